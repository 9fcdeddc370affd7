"""CityHash64, version 1, by which CatBoost identifies a category. It is pure Python, because it is computed
once for each distinct value only."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_K0, _K1, _K2, _K3 = (
    0xC3A5C85C97CB3127,
    0xB492B66FBE98F273,
    0x9AE16A3B2F90404F,
    0xC949D7C7509E6557,
)
_MIX = 0x9DDFEA08EB382D69


def city_hash_64(data: bytes) -> int:
    """The hash of `data`, 64 bits."""
    n = len(data)
    if n <= 16:
        return _up_to_16(data, n)
    if n <= 32:
        return _up_to_32(data, n)
    if n <= 64:
        return _up_to_64(data, n)
    return _longer(data, n)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _rotate(value: int, by: int) -> int:
    return ((value >> by) | (value << (64 - by))) & _MASK if by else value


def _fold(value: int) -> int:
    return value ^ (value >> 47)


def _join(low: int, high: int) -> int:
    """128 bits to 64."""
    a = _fold(((low ^ high) * _MIX) & _MASK)
    b = _fold(((high ^ a) * _MIX) & _MASK)
    return (b * _MIX) & _MASK


def _up_to_16(data: bytes, n: int) -> int:
    if n > 8:
        a, b = _word(data, 0), _word(data, n - 8)
        return _join(a, _rotate((b + n) & _MASK, n)) ^ b
    if n >= 4:
        return _join((n + (_word(data, 0, 4) << 3)) & _MASK, _word(data, n - 4, 4))
    if n:
        y = data[0] + (data[n >> 1] << 8)
        z = n + (data[n - 1] << 2)
        return (_fold(((y * _K2) ^ (z * _K3)) & _MASK) * _K2) & _MASK
    return _K2


def _up_to_32(data: bytes, n: int) -> int:
    a, b = (_word(data, 0) * _K1) & _MASK, _word(data, 8)
    c, d = (_word(data, n - 8) * _K2) & _MASK, (_word(data, n - 16) * _K0) & _MASK
    left = _rotate((a - b) & _MASK, 43) + _rotate(c, 30) + d
    right = a + _rotate(b ^ _K3, 20) - c + n
    return _join(left & _MASK, right & _MASK)


def _up_to_64(data: bytes, n: int) -> int:
    def half(a: int, z: int, second: int, third: int) -> tuple[int, int]:
        b, c = _rotate((a + z) & _MASK, 52), _rotate(a, 37)
        a = (a + second) & _MASK
        c = (c + _rotate(a, 7)) & _MASK
        a = (a + third) & _MASK
        return (a + z) & _MASK, (b + _rotate(a, 31) + c) & _MASK

    start = (_word(data, 0) + (n + _word(data, n - 16)) * _K0) & _MASK
    v = half(start, _word(data, 24), _word(data, 8), _word(data, 16))
    start = (_word(data, 16) + _word(data, n - 32)) & _MASK
    w = half(start, _word(data, n - 8), _word(data, n - 24), _word(data, n - 16))
    r = _fold(((v[0] + w[1]) * _K2 + (w[0] + v[1]) * _K0) & _MASK)
    return (_fold((r * _K0 + v[1]) & _MASK) * _K2) & _MASK


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """32 bytes and two seeds to two numbers."""
    w, x, y, z = (_word(data, at + 8 * i) for i in range(4))
    a = (a + w) & _MASK
    b = _rotate((b + a + z) & _MASK, 21)
    c = a
    a = (a + x + y) & _MASK
    return (a + z) & _MASK, (b + _rotate(a, 44) + c) & _MASK


def _longer(data: bytes, n: int) -> int:
    x, y, z = _word(data, 0), _word(data, n - 16) ^ _K1, _word(data, n - 56) ^ _K0
    v = _weak(data, n - 64, n, y)
    w = _weak(data, n - 32, (n * _K1) & _MASK, _K0)
    z = (z + _fold(v[1]) * _K1) & _MASK
    x = (_rotate((z + x) & _MASK, 39) * _K1) & _MASK
    y = (_rotate(y, 33) * _K1) & _MASK
    for at in range(0, (n - 1) & ~63, 64):
        x = (_rotate((x + y + v[0] + _word(data, at + 16)) & _MASK, 37) * _K1) & _MASK
        y = (_rotate((y + v[1] + _word(data, at + 48)) & _MASK, 42) * _K1) & _MASK
        x, y = x ^ w[1], y ^ v[0]
        z = _rotate(z ^ w[0], 33)
        v = _weak(data, at, (v[1] * _K1) & _MASK, (x + w[0]) & _MASK)
        w = _weak(data, at + 32, (z + w[1]) & _MASK, y)
        z, x = x, z
    left = _join(v[0], w[0]) + _fold(y) * _K1 + z
    return _join(left & _MASK, (_join(v[1], w[1]) + x) & _MASK)
