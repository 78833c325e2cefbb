"""Who decides: the policy contract and the policies that fulfil it."""
