"""SQLAlchemy over sqlite in memory: each job loads objects, changes some, adds others and caches summaries. A
trough comes after each job, when its session is closed."""

import random
import sys

import lifetime_python
import sqlalchemy as sa
from sqlalchemy import orm

random.seed(int(sys.argv[1]))
Base = orm.declarative_base()


class Author(Base):
    __tablename__ = "author"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.String)
    books = orm.relationship("Book", back_populates="author")


class Book(Base):
    __tablename__ = "book"
    id = sa.Column(sa.Integer, primary_key=True)
    title = sa.Column(sa.String)
    pages = sa.Column(sa.Integer)
    author_id = sa.Column(sa.ForeignKey("author.id"), index=True)
    author = orm.relationship("Author", back_populates="books")


engine = sa.create_engine("sqlite://")
Base.metadata.create_all(engine)
summaries = {}


def author():
    titles = [f"Book {random.random()}" for _ in range(random.randrange(1, 6))]
    books = [Book(title=title, pages=random.randrange(900)) for title in titles]
    return Author(name=f"Author {random.random()}", books=books)


for job in range(6):
    with orm.Session(engine) as session:
        session.add_all([author() for _ in range(random.randrange(70, 90))])
        session.flush()
        query = sa.select(Author).options(orm.selectinload(Author.books)).where(Author.id % 3 == job % 3)
        for found in session.scalars(query):
            pages = sum(book.pages for book in found.books)
            if found.id % 2:
                titles = [b.title for b in found.books]
                summaries[found.id] = {"name": found.name, "pages": pages, "titles": titles}
            elif found.books:
                found.books[0].pages += 1
        session.commit()
    lifetime_python.mark()
