"""Operations on rows of 16 numbers, written as LLVM vector instructions that the compiler does not find by itself.

They become AVX-512, AVX2 or NEON code, whatever the machine has, and compute the same bits everywhere: comparisons,
moves, integer arithmetic, and sums and products in a fixed order.

All of them take the address of an array (`address`) instead of the array, and do not check indices. With arrays, every
call would count references and every access would check bounds and negative indices, which together made the learner
four times slower. The caller of `address` must keep the array alive.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from llm_coop_envs.baselines.q_learning.learn.compiled import cgutils, inlined, ir, types

WIDTH = 16
"""The length of a row; rows with fewer prices are padded with minus infinity."""

LANES = 8
"""The number of random number generators that run side by side."""

_F64, _I32, _I64 = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
_ROW = ir.VectorType(_F64, WIDTH)
_INDICES = ir.Constant(ir.VectorType(_I32, WIDTH), list(range(WIDTH)))
_WORDS = ir.VectorType(_I64, LANES)

_tuple: Any = types.Tuple  # the compiler's own functions are untyped
_PAIR = _tuple((types.float64, types.int64))
_TRIPLE = _tuple((types.float64, types.int64, types.float64))


def _pointer(builder: Any, address: Any, index: Any, kind: Any, shift: int = 3) -> Any:
    """A pointer of type `kind` to number `index` of an array of numbers of 2^shift bytes."""
    element = builder.add(address, builder.shl(index, ir.Constant(_I64, shift)))
    return builder.inttoptr(element, kind.as_pointer())


def _spread(builder: Any, value: Any, kind: Any) -> Any:
    """A row of equal values."""
    blank = ir.Constant(ir.VectorType(kind, WIDTH), ir.Undefined)
    first = builder.insert_element(blank, value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, blank, ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH))


def _replaced(builder: Any, row: Any, index: Any, value: Any) -> Any:
    """The row with another value at one index."""
    is_replaced = builder.icmp_signed("==", _INDICES, _spread(builder, builder.trunc(index, _I32), _I32))
    return builder.select(is_replaced, _spread(builder, value, _F64), row)


def _largest(builder: Any, row: Any) -> Any:
    """The largest number of a row, by halving."""
    width = WIDTH
    while width > 1:
        half = width // 2
        blank = ir.Constant(ir.VectorType(_F64, width), ir.Undefined)
        chosen = ir.VectorType(_I32, half)
        low = builder.shuffle_vector(row, blank, ir.Constant(chosen, list(range(half))))
        high = builder.shuffle_vector(row, blank, ir.Constant(chosen, list(range(half, width))))
        row = builder.select(builder.fcmp_ordered(">", low, high), low, high)
        width = half
    return builder.extract_element(row, ir.Constant(_I32, 0))


def _first_index(builder: Any, row: Any, value: Any) -> Any:
    """The first index that holds a value."""
    equal = builder.fcmp_ordered("==", row, _spread(builder, value, _F64))
    mask = builder.zext(builder.bitcast(equal, ir.IntType(WIDTH)), _I64)
    return builder.cttz(mask, ir.Constant(ir.IntType(1), 1))


def _row(builder: Any, address: Any, offset: Any) -> Any:
    """Load a row."""
    row = builder.load(_pointer(builder, address, offset, _ROW))
    row.align = 8
    return row


def _best(typing: Any, address: Any, offset: Any, index: Any, value: Any) -> Any:
    signature = _PAIR(types.int64, types.int64, types.int64, types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _replaced(builder, _row(builder, args[0], args[1]), args[2], args[3])
        top = _largest(builder, row)
        return context.make_tuple(builder, signature.return_type, (top, _first_index(builder, row, top)))

    return signature, generate


def _best_two(typing: Any, address: Any, offset: Any, index: Any, value: Any) -> Any:
    signature = _TRIPLE(types.int64, types.int64, types.int64, types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _replaced(builder, _row(builder, args[0], args[1]), args[2], args[3])
        top = _largest(builder, row)
        first = _first_index(builder, row, top)
        others = _replaced(builder, row, first, ir.Constant(_F64, float("-inf")))
        return context.make_tuple(builder, signature.return_type, (top, first, _largest(builder, others)))

    return signature, generate


def _reading(number: Any, kind: Any) -> Any:
    """Make the function that reads a number from an array of type `kind`."""

    def read(typing: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if kind is _I32:
                return builder.zext(builder.load(_pointer(builder, args[0], args[1], kind, 2)), _I64)
            return builder.load(_pointer(builder, args[0], args[1], kind))

        return number(types.int64, types.int64), generate

    return inlined(read)


def _writing(number: Any, kind: Any) -> Any:
    """Make the function that writes a number into an array of type `kind`."""

    def write(typing: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if kind is _I32:
                builder.store(builder.trunc(args[2], kind), _pointer(builder, args[0], args[1], kind, 2))
            else:
                builder.store(args[2], _pointer(builder, args[0], args[1], kind))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, number), generate

    return inlined(write)


def _exp(builder: Any, row: Any) -> Any:
    """Exp of a row of numbers up to 0, within two units in the last place; below -700, exp(-700).

    exp(x) = 2^k e^r with |r| <= ln 2 / 2. The series of e^r up to the twelfth power is summed in pairs, so that few
    products wait for each other.
    """

    def every(number: float) -> Any:
        return ir.Constant(_ROW, [number] * WIDTH)

    row = builder.select(builder.fcmp_ordered(">", row, every(-700.0)), row, every(-700.0))
    # Adding so large a number leaves an integer in the lowest bits.
    shifted = builder.fadd(builder.fmul(row, every(1.4426950408889634)), every(1.5 * 2.0**52))
    k = builder.fsub(shifted, every(1.5 * 2.0**52))
    r = builder.fsub(row, builder.fmul(k, every(0.693147180369123816490)))
    r = builder.fsub(r, builder.fmul(k, every(1.90821492927058770002e-10)))
    terms, power = [every(1.0 / math.factorial(n)) for n in range(13)], r
    while len(terms) > 1:
        pairs = itertools.zip_longest(terms[::2], terms[1::2])
        terms = [a if b is None else builder.fadd(a, builder.fmul(b, power)) for a, b in pairs]
        power = builder.fmul(power, power)
    bits = ir.VectorType(_I64, WIDTH)
    exponent = builder.shl(builder.bitcast(shifted, bits), ir.Constant(bits, [52] * WIDTH))
    return builder.bitcast(builder.add(builder.bitcast(terms[0], bits), exponent), _ROW)


def _weigh(typing: Any, address: Any, offset: Any, top: Any, steep: Any, out: Any, index: Any, base: Any) -> Any:
    signature = types.float64(*[types.int64] * 2, *[types.float64] * 2, *[types.int64] * 2, types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = builder.fsub(_row(builder, args[0], args[1]), _spread(builder, args[2], _F64))
        sums = _exp(builder, builder.fmul(row, _spread(builder, args[3], _F64)))
        nothing = ir.Constant(_ROW, [0.0] * WIDTH)
        for step in (1, 2, 4, 8):
            lanes = [WIDTH + k if k < step else k - step for k in range(WIDTH)]
            moved = builder.shuffle_vector(sums, nothing, ir.Constant(ir.VectorType(_I32, WIDTH), lanes))
            sums = builder.fadd(sums, moved)
        sums = builder.fadd(sums, _spread(builder, args[6], _F64))
        builder.store(sums, _pointer(builder, args[4], args[5], _ROW)).align = 8
        return builder.extract_element(sums, ir.Constant(_I32, WIDTH - 1))

    return signature, generate


def _count_below(typing: Any, address: Any, offset: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        less = builder.fcmp_ordered("<", _row(builder, args[0], args[1]), _spread(builder, args[2], _F64))
        return builder.zext(builder.ctpop(builder.bitcast(less, ir.IntType(WIDTH))), _I64)

    return types.int64(types.int64, types.int64, types.float64), generate


def _fetch(typing: Any, address: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        line = _pointer(builder, args[0], args[1], ir.IntType(8))
        kind = ir.FunctionType(ir.VoidType(), [line.type, _I32, _I32, _I32])
        insert: Any = cgutils.get_or_insert_function  # the compiler's own functions are untyped
        hint = insert(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(hint, [line, ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _draw(typing: Any, state: Any, out: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def every(number: int) -> Any:
            return ir.Constant(_WORDS, [number] * LANES)

        def rotated(word: Any, bits: int) -> Any:
            return builder.or_(builder.shl(word, every(bits)), builder.lshr(word, every(64 - bits)))

        pointers = [_pointer(builder, args[0], ir.Constant(_I64, k * LANES), _WORDS) for k in range(4)]
        s = []
        for pointer in pointers:
            word = builder.load(pointer)
            word.align = 8
            s.append(word)
        result = builder.add(rotated(builder.add(s[0], s[3]), 23), s[0])
        builder.store(result, _pointer(builder, args[1], args[2], _WORDS)).align = 8
        shifted = builder.shl(s[1], every(17))
        s[2] = builder.xor(s[2], s[0])
        s[3] = builder.xor(s[3], s[1])
        s[1] = builder.xor(s[1], s[2])
        s[0] = builder.xor(s[0], s[3])
        s[2] = builder.xor(s[2], shifted)
        s[3] = rotated(s[3], 45)
        for pointer, word in zip(pointers, s, strict=True):
            builder.store(word, pointer).align = 8
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _address_of(array: Any, size: int) -> Any:
    if not (isinstance(array, types.Array) and array.layout == "C" and array.dtype.bitwidth == 8 * size):
        raise TypeError(f"only a contiguous array of {size}-byte numbers has an address here, not {array}")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, _I64)

    return types.int64(array), generate


def _address(typing: Any, array: Any) -> Any:
    return _address_of(array, 8)


def _half_address(typing: Any, array: Any) -> Any:
    return _address_of(array, 4)


address, half_address = inlined(_address), inlined(_half_address)
"""address(array) -> the address of a contiguous array of 8-byte numbers; `half_address` of one of 4-byte numbers."""

best = inlined(_best)
"""best(address, offset, index, value) -> (largest, its index) of the row at `offset`, with `value` at `index`.

Of several equal largest numbers the first counts. An `index` outside the row replaces nothing. The array itself is not
changed.
"""

best_two = inlined(_best_two)
"""best_two(address, offset, index, value) -> (largest, its index, largest of the others); otherwise as `best`."""

get, get_whole = _reading(types.float64, _F64), _reading(types.int64, _I64)
"""get(address, index) -> array[index], for float64 and for int64."""

put, put_whole = _writing(types.float64, _F64), _writing(types.int64, _I64)
"""put(address, index, value): array[index] = value, for float64 and for int64."""

get_half, put_half = _reading(types.int64, _I32), _writing(types.int64, _I32)
"""As `get_whole` and `put_whole`, for uint32, with a `half_address`."""

weigh = inlined(_weigh)
"""weigh(address, offset, top, steep, out, index, base) -> `base` plus the sum of exp(steep (number - top)) over a row.

The row is the one at `offset`; none of its numbers may be above `top`. The cumulative sums, `base` included, are
written to `out` from `index` on.
"""

count_below = inlined(_count_below)
"""count_below(address, offset, value) -> how many numbers of the row at `offset` are below `value`."""

fetch = inlined(_fetch)
"""fetch(address, index): prefetch the cache line of array[index]; has no effect on results."""

draw = inlined(_draw)
"""draw(state, out, index): the next `LANES` words of xoshiro256++ (Blackman and Vigna 2021) into out[index:].

`state` is the address of uint64 (4, LANES), one generator per column; `out` the address of uint64.
"""
