"""Seats that are asked and answered one question at a time, for trainers and environments of other tools."""

from llm_coop_envs.policies.llm.seats.question_log import Message
from llm_coop_envs.policies.llm.seats.seats import ChatSeat, ChatSeats, Reply

__all__ = ["ChatSeat", "ChatSeats", "Message", "Reply"]
