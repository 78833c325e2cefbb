import pytest
from configurations import CONFIGURATIONS


@pytest.fixture(params=sorted(CONFIGURATIONS))
def configuration(request):
    return CONFIGURATIONS[request.param]


@pytest.fixture
def module(configuration):
    return configuration[0]


@pytest.fixture
def make(configuration):
    """A function that makes the configured parallel environment."""
    module, settings = configuration

    def make_one(**more):
        return module.parallel_env(**{**settings, **more})

    return make_one


@pytest.fixture
def make_aec(configuration):
    """A function that makes the configured agent-by-agent environment, with PettingZoo's checks."""
    module, settings = configuration

    def make_one(**more):
        return module.env(**{**settings, **more})

    return make_one
