"""Money in decimals and exact fractions."""

import decimal
import fractions
import sys

scale = float(sys.argv[1])
D = decimal.Decimal
cents = D("0.01")
total, tax = D(0), D(0)
for i in range(int(250_000 * scale) + 10):
    price = D(i % 1000) * D("1.13") / D(7)
    rounded = price.quantize(cents, rounding=decimal.ROUND_HALF_EVEN)
    total += rounded
    tax += (rounded * D("0.19")).quantize(cents)
f = fractions.Fraction(0)
for i in range(1, int(12_000 * scale) + 10):
    f += fractions.Fraction(i % 90, i % 89 + 1)
print(total, tax, f.limit_denominator(1000))
