"""Property tests draw the same examples in every run; ``--hypothesis-profile=explore`` looks for other ones."""

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("house")
