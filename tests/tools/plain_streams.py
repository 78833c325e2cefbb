"""The fast random streams of the compiled learners, on Python's integers."""

MASK = 2**64 - 1


class Lanes:
    """xoshiro256++ in eight generators that take turns, on Python's ints."""

    def __init__(self, words):
        self.generators = [[int(words[row][lane]) for row in range(4)] for lane in range(8)]
        self.turn = 0

    def __call__(self):
        s = self.generators[self.turn]
        self.turn = (self.turn + 1) % 8
        result = (self.rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self.rotate(s[3], 45)
        return result

    @staticmethod
    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & MASK


class Mix:
    """SplitMix64, as a number in [0, 1)."""

    def __init__(self, state):
        self.state = int(state)

    def __call__(self):
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 11) / 2**53
