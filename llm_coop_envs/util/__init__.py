"""Small things that every room may use and that know nothing of environments: checks, YAML, extras, Ctrl-C, Ray."""
