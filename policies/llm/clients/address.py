"""What is at an address, and the way to it."""

from __future__ import annotations

import asyncio
import urllib.request
from urllib.parse import urlsplit

from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, is_loopback
from llm_coop_envs.util.extras import need

LOOK_SECONDS = 5.0


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address.

    Not left to aiohttp's `trust_env`, which also sends the password that `~/.netrc` holds for the host.
    """
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


async def is_there(endpoint: Endpoint) -> bool:
    """Whether a server answers at an endpoint's address, whatever it says; no key is sent.

    Where litellm knows the address and we do not, the answer is yes.
    """
    if endpoint.base_url is None and not endpoint.is_openai:
        return True
    aiohttp = need("aiohttp", "asking a model", "openai")
    timeout = aiohttp.ClientTimeout(total=LOOK_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
            session.get(endpoint.url, allow_redirects=False, proxy=proxy_for(endpoint.url)),
        ):
            return True
    except (aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError):
        return False
