#!/usr/bin/env python3
"""hakmem push: what a collector gets, and collectors that are away, slow, or refuse."""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import test_command
import test_top

COMMAND = test_command.COMMAND


class Collector(http.server.ThreadingHTTPServer):
    """Notes what comes, and answers with the statuses in turn, the last one for ever. None = no answer."""

    daemon_threads = True

    def __init__(self, *statuses, at=None):
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=at is None)
        if at is not None:  # a socket that has an address, and does not listen yet
            self.socket.close()
            self.socket, self.server_address = at, at.getsockname()
            self.server_activate()
        self.statuses, self.got, self.came = list(statuses) or [200], [], threading.Semaphore(0)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        c = self.server
        status = c.statuses[min(len(c.got), len(c.statuses) - 1)]
        c.got.append((self.path, self.headers["Content-Type"], body))
        c.came.release()
        if status is None:
            time.sleep(60)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


class Push(test_command.Case):
    def collector(self, *statuses, **options):
        made = Collector(*statuses, **options)
        self.addCleanup(made.server_close)
        self.addCleanup(made.shutdown)
        return made

    def start(self, port, *arguments, path="", preload=None):
        environment = os.environ | ({"LD_PRELOAD": preload} if preload else {})
        process = subprocess.Popen([COMMAND, "push", "--otlp", f"http://127.0.0.1:{port}{path}", "-i", "0.1",
                                    *map(str, arguments or [self.file])], stderr=subprocess.PIPE, text=True,
                                   env=environment)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        self.assertEqual(process.wait(timeout=20), 0)
        return said

    def wait(self, collector, times=1):
        for _ in range(times):
            self.assertTrue(collector.came.acquire(timeout=20))

    def test_what_comes(self):
        collector = self.collector()
        process = self.start(collector.server_port)
        self.wait(collector, 3)
        self.assertEqual(self.end(process), "")
        path, kind, body = collector.got[0]
        self.assertEqual((path, kind), ("/v1/metrics", "application/json"))
        (resource,) = json.loads(body)["resourceMetrics"]
        attributes = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}
        self.assertEqual(attributes["process.pid"], {"intValue": "71"})
        self.assertEqual(attributes["service.name"], {"stringValue": "lua"})
        (scope,) = resource["scopeMetrics"]
        self.assertEqual(scope["scope"]["name"], "hakmem")
        metrics = {m["name"]: m for m in scope["metrics"]}
        # Each number of the other format is there.
        for line in self.text("prometheus", self.file).splitlines():
            if line.startswith("#"):
                continue
            name, value = line.partition("{")[0].removesuffix("_total"), line.rpartition(" ")[2]
            data = metrics[name].get("gauge") or metrics[name]["sum"]
            value = str(min(int(value), 2**63 - 1))
            self.assertIn(value, [p["asInt"] for p in data["dataPoints"]], line)
        self.assertEqual(metrics["hakmem_live_bytes"]["unit"], "By")
        failures = metrics["hakmem_failures"]["sum"]
        self.assertEqual((failures["aggregationTemporality"], failures["isMonotonic"]), (2, True))
        point = metrics["hakmem_label_live_bytes"]["gauge"]["dataPoints"][0]
        self.assertEqual([a["key"] for a in point["attributes"]], ["context", "label"])
        self.assertLess(abs(int(point["timeUnixNano"]) / 1e9 - time.time()), 60)

    def test_the_definitions_of_opentelemetry_decode_it(self):
        try:
            from google.protobuf import json_format
            from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        except ImportError:
            self.skipTest("opentelemetry-proto is not there")
        collector = self.collector()
        process = self.start(collector.server_port)
        self.wait(collector)
        self.end(process)
        request = json_format.Parse(collector.got[0][2], metrics_service_pb2.ExportMetricsServiceRequest())
        metrics = request.resource_metrics[0].scope_metrics[0].metrics
        live = next(m for m in metrics if m.name == "hakmem_live_bytes")
        self.assertEqual({p.as_int for p in live.gauge.data_points},
                         {c["stats"]["live_bytes"] for c in self.report["contexts"] if "stats" in c})

    def test_a_path_that_is_given_stays(self):
        collector = self.collector()
        process = self.start(collector.server_port, path="/otlp/x")
        self.wait(collector)
        self.end(process)
        self.assertEqual(collector.got[0][0], "/otlp/x")

    def test_a_collector_that_is_away_is_told_once(self):
        # Nobody else gets the port meanwhile. Each try takes another time, which libcurl's text has in it.
        away = socket.socket()
        away.bind(("127.0.0.1", 0))
        process = self.start(away.getsockname()[1], preload=os.environ.get("HAKMEM_SLOW_CONNECT"))
        line = process.stderr.readline()
        self.assertRegex(line, "^hakmem: the collector does not answer: .*\n$")
        time.sleep(0.5)  # several tries
        collector = self.collector(at=away)
        self.wait(collector, 2)
        self.assertEqual(self.end(process), "hakmem: reports are sent again\n")

    def test_a_collector_that_refuses(self):
        collector = self.collector(503, 503, 404)
        process = self.start(collector.server_port)
        self.wait(collector, 5)
        self.assertEqual(self.end(process), "hakmem: the collector answers 503\nhakmem: the collector answers 404\n")

    def test_a_collector_that_never_answers(self):
        collector = self.collector(None, 200)
        process = self.start(collector.server_port)
        self.assertRegex(process.stderr.readline(), "^hakmem: the collector does not answer: .*[Tt]imed? ?out")
        self.wait(collector, 2)
        self.end(process)

    def test_a_report_that_goes_and_comes(self):
        collector = self.collector()
        process = self.start(collector.server_port)
        self.wait(collector)
        away = self.folder / "away"
        os.rename(self.file, away)
        self.assertEqual(process.stderr.readline(), f"hakmem: {self.file}: No such file or directory\n")
        os.rename(away, self.file)
        while collector.came.acquire(blocking=False):
            pass
        self.wait(collector)
        self.assertEqual(self.end(process), "hakmem: reports are sent again\n")

    def test_more_than_1024_processes_are_left_out(self):
        files = [self.write(f"{pid}.json", json.dumps(test_top.report({"f": 1}, pid=pid))) for pid in range(1, 1026)]
        collector = self.collector()
        process = self.start(collector.server_port, *files)
        self.wait(collector, 15)  # more than a second, after which all are asked again
        self.assertEqual(self.end(process), "hakmem: more than 1024 processes: the others are left out\n")
        self.assertEqual(len(json.loads(collector.got[0][2])["resourceMetrics"]), 1024)

    def test_wrong_arguments(self):
        for arguments, status, said in (
            ((), 2, "needs --otlp URL"),
            (("--otlp", "ftp://x"), 2, "'ftp://x' is no URL of a collector"),
            (("--otlp", "localhost"), 2, "'localhost' is no URL"),
            (("--otlp", "http://"), 2, "'http://' is no URL"),
            (("--otlp", ""), 2, "'' is no URL"),
            (("--otlp", "http://localhost:1", "/none/such"), 1, "/none/such: No such file"),
        ):
            done = subprocess.run([COMMAND, "push", *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
            self.assertIn(said, done.stderr)
        done = subprocess.run([COMMAND, "top", "--otlp", "http://x", self.file], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    if "push" not in test_command.hakmem("--help").stdout.decode():
        print("this build has no push")
        sys.exit(77)
    unittest.main()
