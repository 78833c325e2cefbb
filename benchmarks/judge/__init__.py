"""A language model as a judge of talk: a recorded rubric, the questions, and how far judge, rules and truth agree."""
