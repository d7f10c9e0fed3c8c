"""Objects that are made from JSON and checked by a model, and written again: pydantic, if it is installed."""

import sys

import pydantic


class Item(pydantic.BaseModel):
    name: str
    price: float
    tags: list[str]


class Order(pydantic.BaseModel):
    number: int
    customer: str
    items: list[Item]


def main(scale):
    text = '{"number": 7, "customer": "a customer", "items": [%s]}' % ", ".join(
        ['{"name": "thing", "price": 1.5, "tags": ["a", "bb", "ccc"]}'] * 8
    )
    size = 0
    for _ in range(int(10000 * scale)):
        size += len(Order.model_validate_json(text).model_dump_json())
    print(size)


main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
