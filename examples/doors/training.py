"""A network learns to price through TRL's `GRPOTrainer`: a small one, so that two cores do it in minutes.

Needs `pip install trl` (tried with 1.16.0) and torch. The network begins with random weights, so it first imitates
games in which random prices are set with tools; then it is trained on its profits beside a price-matching firm. The
results say nothing about language models; to train one, give `trainer` its tokenizer and the model itself.

    cd examples && python -m doors.training ../runs/training
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from doors.trl_door import Firm
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen2_5_chat_template

TASK = [{"role": "system", "content": "Answer with tools."}, {"role": "user", "content": "Play this game. "}]
GAME: Mapping[str, Any] = {"talk": False, "max_cycles": 2, "history_window": 2}
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = SPECIAL_TOKENS[-1]


def format_call(tool: str, **arguments: Any) -> str:
    """A call of a tool as the network writes it."""
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>{END}"


def random_episode(game: Mapping[str, Any], draw: random.Random) -> list[dict[str, str]]:
    """An episode with random prices, as the conversation that TRL makes of it."""
    firm = Firm(**game)
    question = firm.reset(draw.randrange(1000))
    talk = [TASK[0], {"role": "user", "content": TASK[1]["content"] + question}]
    while question != Firm.OVER:
        price = draw.randrange(120, 211, 10) / 100
        talk.append({"role": "assistant", "content": format_call("set_price", price=price).removesuffix(END)})
        question = firm.set_price(price)
        talk.append({"role": "user", "content": f"<tool_response>\n{question}\n</tool_response>"})
    return [*talk, {"role": "assistant", "content": "Done."}]


def network(game: Mapping[str, Any], width: int) -> tuple[PreTrainedTokenizerFast, Qwen2ForCausalLM]:
    """A tokenizer with 640 tokens for this game's texts, and a transformer of two layers with random weights."""
    torch.manual_seed(0)
    bytes_and_pairs = ByteLevelBPETokenizer()
    firm = Firm(**game)
    texts = [firm.reset(0), format_call("set_price", price=1.5), qwen2_5_chat_template, *map(str, range(100))]
    bytes_and_pairs.train_from_iterator(texts, vocab_size=640, min_frequency=1, special_tokens=SPECIAL_TOKENS)
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=bytes_and_pairs._tokenizer, eos_token=END, pad_token=SPECIAL_TOKENS[0]
    )
    tokens.chat_template = qwen2_5_chat_template
    sizes = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = Qwen2Config(
        vocab_size=len(tokens), num_key_value_heads=4, max_position_embeddings=4096, **sizes, tie_word_embeddings=True
    )
    config.eos_token_id, config.pad_token_id = tokens.eos_token_id, tokens.pad_token_id
    return tokens, Qwen2ForCausalLM(config)


def imitate(tokens: Any, model: Any, tools: list[Any], steps: int, game: Mapping[str, Any] = GAME) -> float:
    """Train the network to write its turns of episodes with random prices; returns the last loss."""
    draw, optimiser = random.Random(0), torch.optim.AdamW(model.parameters(), lr=5e-3)
    episodes = [tokens.apply_chat_template(random_episode(game, draw), tools=tools, tokenize=False) for _ in range(32)]
    for _ in range(steps):
        rows, own = [], []
        for text in draw.sample(episodes, 2):
            # Every second piece is a turn of the network; only these count in the loss.
            pieces = re.split(r"(?<=<\|im_start\|>assistant\n)(.*?<\|im_end\|>)", text, flags=re.DOTALL)
            parts = [torch.tensor(tokens(piece)["input_ids"]) for piece in pieces]
            rows.append(torch.cat(parts))
            targets = [part if index % 2 else torch.full_like(part, -100) for index, part in enumerate(parts)]
            own.append(torch.cat(targets))
        ids, labels = (
            torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=fill)
            for sequences, fill in ((rows, tokens.pad_token_id), (own, -100))
        )
        loss = model(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.detach())


def trainer(
    tokens: Any, model: Any, game: Mapping[str, Any], *, steps: int, rollouts: int, folder: Path
) -> GRPOTrainer:
    """TRL's trainer of a firm, with `rollouts` games from one seed in each step."""
    settings = GRPOConfig(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=rollouts,
        num_generations=rollouts,
        max_completion_length=2048,
        max_tool_calling_iterations=8,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    rows = Dataset.from_list([{"prompt": TASK, "seed": seed} for seed in range(steps)])
    return GRPOTrainer(
        model, args=settings, train_dataset=rows, processing_class=tokens, environment_factory=lambda: Firm(**game)
    )


def main(folder: Path, imitation_steps: int = 220, steps: int = 8) -> None:
    """Imitate, train, and print the mean reward of an episode after each step."""
    begun = time.monotonic()
    tokens, model = network(GAME, width=64)
    trained = trainer(tokens, model, GAME, steps=steps, rollouts=8, folder=folder)
    print(f"{model.num_parameters():,} parameters")
    loss = imitate(tokens, model, trained.tools, imitation_steps)
    print(f"shown {imitation_steps} times, loss {loss:.3f}, {time.monotonic() - begun:.0f} s")
    trained.train()
    for entry in trained.state.log_history:
        if "reward" in entry:
            failures = entry["tools/failure_frequency"]
            print(f"step {entry['step']}: reward {entry['reward']:.3f}, failed calls {failures:.2f}")
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
