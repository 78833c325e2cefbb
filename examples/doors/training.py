"""A network learns to price through TRL's `GRPOTrainer`: a small one, so that two cores do it in minutes.

Needs `pip install trl` (tried with 1.16.0) and torch. The network begins with random weights, so it is first shown how
prices are set with tools, at prices drawn evenly; then it is trained on what it earns beside a price-matching firm.
What it learns says nothing about language models; for one, give `trainer` its tokenizer and the model itself.

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
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = MARKS[-1]


def called(tool: str, **arguments: Any) -> str:
    """A call of a tool as the network writes it."""
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>{END}"


def shown(game: Mapping[str, Any], draw: random.Random) -> list[dict[str, str]]:
    """An episode in which prices are drawn evenly, as the conversation that TRL makes of it."""
    firm = Firm(**game)
    asked = firm.reset(draw.randrange(1000))
    talk = [TASK[0], {"role": "user", "content": TASK[1]["content"] + asked}]
    while asked != Firm.OVER:
        price = draw.randrange(120, 211, 10) / 100
        talk.append({"role": "assistant", "content": called("set_price", price=price).removesuffix(END)})
        asked = firm.set_price(price)
        talk.append({"role": "user", "content": f"<tool_response>\n{asked}\n</tool_response>"})
    return [*talk, {"role": "assistant", "content": "Done."}]


def network(game: Mapping[str, Any], width: int) -> tuple[PreTrainedTokenizerFast, Qwen2ForCausalLM]:
    """A tokenizer of 640 tokens for this game's words, and a transformer of two layers with random weights."""
    torch.manual_seed(0)
    bytes_and_pairs = ByteLevelBPETokenizer()
    firm = Firm(**game)
    words = [firm.reset(0), called("set_price", price=1.5), qwen2_5_chat_template, *map(str, range(100))]
    bytes_and_pairs.train_from_iterator(words, vocab_size=640, min_frequency=1, special_tokens=MARKS)
    tokens = PreTrainedTokenizerFast(tokenizer_object=bytes_and_pairs._tokenizer, eos_token=END, pad_token=MARKS[0])
    tokens.chat_template = qwen2_5_chat_template
    sizes = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = Qwen2Config(
        vocab_size=len(tokens), num_key_value_heads=4, max_position_embeddings=4096, **sizes, tie_word_embeddings=True
    )
    config.eos_token_id, config.pad_token_id = tokens.eos_token_id, tokens.pad_token_id
    return tokens, Qwen2ForCausalLM(config)


def show(tokens: Any, model: Any, tools: list[Any], steps: int, game: Mapping[str, Any] = GAME) -> float:
    """Train on episodes with drawn prices, the network's own turns alone; the last loss."""
    draw, optimiser = random.Random(0), torch.optim.AdamW(model.parameters(), lr=5e-3)
    seen = [tokens.apply_chat_template(shown(game, draw), tools=tools, tokenize=False) for _ in range(32)]
    for _ in range(steps):
        rows, own = [], []
        for text in draw.sample(seen, 2):
            # Every second piece is a turn of the network's.
            pieces = re.split(r"(?<=<\|im_start\|>assistant\n)(.*?<\|im_end\|>)", text, flags=re.DOTALL)
            parts = [torch.tensor(tokens(piece)["input_ids"]) for piece in pieces]
            rows.append(torch.cat(parts))
            own.append(torch.cat([one if place % 2 else torch.full_like(one, -100) for place, one in enumerate(parts)]))
        ids, labels = (
            torch.nn.utils.rnn.pad_sequence(one, batch_first=True, padding_value=fill)
            for one, fill in ((rows, tokens.pad_token_id), (own, -100))
        )
        loss = model(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.detach())


def trainer(
    tokens: Any, model: Any, game: Mapping[str, Any], *, steps: int, rollouts: int, folder: Path
) -> GRPOTrainer:
    """TRL's trainer of a firm: so many rollouts of one seed in each step."""
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


def main(folder: Path, shown_steps: int = 220, steps: int = 8) -> None:
    """Show, train, and print the mean reward of an episode step by step."""
    begun = time.monotonic()
    tokens, model = network(GAME, width=64)
    trained = trainer(tokens, model, GAME, steps=steps, rollouts=8, folder=folder)
    print(f"{model.num_parameters():,} parameters")
    loss = show(tokens, model, trained.tools, shown_steps)
    print(f"shown {shown_steps} times, loss {loss:.3f}, {time.monotonic() - begun:.0f} s")
    trained.train()
    for told in trained.state.log_history:
        if "reward" in told:
            print(
                f"step {told['step']}: reward {told['reward']:.3f}, failed calls {told['tools/failure_frequency']:.2f}"
            )
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
