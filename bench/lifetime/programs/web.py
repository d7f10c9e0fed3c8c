"""A Flask application in its own process: sessions on the server, a cache of fragments, templates, answers
that are streamed. Up to 60 requests are under way at once; a trough comes when the last of a
burst has been sent."""

import collections
import contextvars
import random
import sys

import flask
import jinja2
import lifetime_python

random.seed(int(sys.argv[1]))
app = flask.Flask(__name__)
sessions, fragments = collections.OrderedDict(), collections.OrderedDict()
PAGE = """<h1>{{ title }}</h1>{% for row in rows %}<li class="{{ loop.cycle('a', 'b') }}">{{ row.name }}:
{{ row.price }} {% if row.tags %}{{ row.tags | join(', ') | upper }}{% endif %}</li>{% endfor %}"""
app.jinja_env.loader = jinja2.DictLoader({"page": PAGE})


def bounded(cache, key, value, most):
    cache[key] = value
    if len(cache) > most:
        cache.popitem(last=False)


def rows_of(topic):
    names = [f"item {topic}-{i}" for i in range(40)]
    return [{"name": n, "price": i * 1.25, "tags": [f"t{i % 7}", f"u{i % 5}"]} for i, n in enumerate(names)]


@app.route("/<user>/<int:topic>")
def page(user, topic):
    session = sessions.get(user)
    if session is None:
        session = {"user": user, "seen": [], "settings": {"lang": "en", "size": topic % 9}}
        bounded(sessions, user, session, 300)
    session["seen"] = [*session["seen"][-4:], f"/{user}/{topic}"]
    text = fragments.get(topic)
    rows = rows_of(topic)
    if text is None:
        text = flask.render_template("page", title=f"Topic {topic}", rows=rows)
        bounded(fragments, topic, text, 150)

    def parts():
        yield text
        for row in rows:
            yield str(row)

    return flask.Response(flask.stream_with_context(parts()))


def environ():
    path = f"/user{random.randrange(900)}/{random.randrange(400)}"
    return {
        "REQUEST_METHOD": "GET", "PATH_INFO": path, "SERVER_NAME": "test", "SERVER_PORT": "80",
        "wsgi.url_scheme": "http", "HTTP_COOKIE": f"a={random.random()}", "HTTP_ACCEPT": "text/html",
    }  # fmt: skip


class Request:
    def __init__(self):
        self.context = contextvars.copy_context()
        self.body = self.context.run(app, environ(), lambda status, headers: None)
        self.context.run(next, iter(self.body))

    def end(self):
        self.context.run(self.body.close)


for _ in range(6):
    under_way = []
    for _ in range(random.randrange(90, 110)):
        under_way.append(Request())
        if len(under_way) > 60:
            under_way.pop(random.randrange(60)).end()
    while under_way:
        under_way.pop().end()
    lifetime_python.mark()
