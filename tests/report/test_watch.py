"""The server of a page while runs go on: it tells what changed, and is attacked."""

import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sunrise.report import live, watch
from sunrise.report.live import Live
from sunrise.report.page.report import live_content
from sunrise.report.watch import Server
from tests.report.browser import opened, until
from tests.report.folders import make_run
from tests.report.pages import logged


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look is a new one."""
    monkeypatch.setattr(live, "PAUSE", 0.0)


@contextmanager
def served(folder: Path, host: str = "127.0.0.1") -> Iterator[Server]:
    with Server(Live(folder, live_content), host, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def data(server: Server, since: str = "") -> dict[str, Any]:
    status, _, body = ask(server, f"/data?since={since}")
    assert status == 200
    return dict(json.loads(body))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs of two arms, one of them failed, beside a secret that is not below them."""
    (tmp_path / "secret.txt").write_text("secret")
    make_run(tmp_path / "runs" / "one", metrics=logged(5, 1), total_timesteps=10_000)
    make_run(tmp_path / "runs" / "two words", status="failed", error="out of memory", ensemble_size=1)
    videos = tmp_path / "runs" / "one" / "videos"
    videos.mkdir()
    (videos / "film.mp4").write_bytes(b"0123456789")
    return tmp_path / "runs"


def test_only_what_changed_is_sent(runs: Path) -> None:
    with served(runs) as server:
        first = data(server)
        assert {run["id"] for run in first["runs"]} == {"one", "two words"}
        again = data(server, first["token"])
        assert again == {"runs": [], "gone": [], "token": first["token"]}
        with (runs / "one" / "eval.csv").open("a") as file:
            file.write("4000,9.0,0,9.0,9.0,10\n5000,")  # the second row is being written
        then = data(server, first["token"])
        assert [run["id"] for run in then["runs"]] == ["one"]
        assert then["runs"][0]["timesteps"] == 12_000  # by its metrics
        assert not {"settings", "grounds", "arms"} & then.keys()
        (runs / "two words" / "config.json").unlink()
        assert data(server, then["token"])["gone"] == ["two words"]
        assert {run["id"] for run in data(server, "another.3")["runs"]} == {"one"}  # a page of another server


def test_stopped_runs_are_shown_with_the_command_that_goes_on(runs: Path) -> None:
    make_run(runs / "three", status="running", seed=2)  # nobody holds its lock: it was killed
    with served(runs) as server:
        found = {run["id"]: run for run in data(server)["runs"]}
        assert found["two words"]["status"] == "failed"
        assert found["two words"]["reason"] == "out of memory"
        assert found["two words"]["resume"] == f"sunrise resume '{runs}/two words'"
        assert found["three"]["status"] == "stopped"


def test_a_folder_may_be_empty_and_fill(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        first = data(server)
        assert first["title"] == "No runs yet"
        make_run(tmp_path / "fresh", returns=(), metrics=(), status="stopped")
        assert [run["id"] for run in data(server, first["token"])["runs"]] == ["fresh"]
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "config.json").write_text("{")
        assert "broken cannot be read" in " ".join(data(server, first["token"])["warnings"])


def test_nothing_but_its_three_addresses_is_served_and_nothing_is_changed(runs: Path) -> None:
    paths = [
        *("/../secret.txt", "/%2e%2e/secret.txt", "/one/config.json", "//etc/passwd", "http://127.0.0.1/", "/x" * 900),
        *("/video", "/video?run=..&name=secret.txt", "/video?run=one&name=../config.json"),
        *("/video?run=one&name=film.mp4%00", "/data?" + "a=1&" * 100, "/%00", "/data/../secret.txt", "*"),
    ]
    methods = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW")
    with served(runs) as server:
        data(server)
        for path in paths:
            status, _, body = ask(server, path)
            assert status in (400, 403, 404, 414), path
            assert b"secret" not in body
        for method in methods:
            assert ask(server, "/", method)[0] == 405, method
        status, headers, body = ask(server, "/data", "HEAD")
        assert (status, body) == (200, b"")
        assert int(headers["Content-Length"]) > 100


def test_a_host_that_is_not_ours_is_refused(runs: Path) -> None:
    with served(runs) as server:
        port = server.server_port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert ask(server, "/data", Host=host)[0] == 200
        other = (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1:1",
            f"127.0.0.1.evil.example:{port}",
            "",
            "a b",
            f"10.0.0.1:{port}",
        )
        for host in other:
            assert ask(server, "/data", Host=host)[0] == 403, host
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(f"GET /data HTTP/1.1\r\nHost: localhost:{port}\r\nHost: evil.example\r\n\r\n".encode())
            assert b" 403 " in raw.recv(100)
    with served(runs, "0.0.0.0") as server:  # others may look, by address; a name may be anybody's
        assert not server.is_local
        assert ask(server, "/data", Host=f"10.0.0.1:{server.server_port}")[0] == 200
        assert ask(server, "/data", Host=f"evil.example:{server.server_port}")[0] == 403


def test_links_lead_nowhere(runs: Path, tmp_path: Path) -> None:
    outside = make_run(tmp_path / "outside" / "run", config={"command": ["secret"]})
    (runs / "linked").symlink_to(outside)
    (runs / "one" / "videos" / "link.mp4").symlink_to(tmp_path / "secret.txt")
    make_run(runs / "files")
    (runs / "files" / "eval.csv").unlink()
    (runs / "files" / "eval.csv").symlink_to(outside / "eval.csv")
    with served(runs) as server:
        found = data(server)
        assert {run["id"] for run in found["runs"]} == {"one", "two words"}
        assert "files cannot be read" in " ".join(found["warnings"])
        assert ask(server, "/video?run=one&name=link.mp4")[0] == 404
        assert ask(server, "/video?run=one&name=film.mp4")[2] == b"0123456789"
        film = runs / "one" / "videos" / "film.mp4"
        film.unlink()
        film.symlink_to(tmp_path / "secret.txt")  # after it was listed
        live_one = ask(server, "/video?run=one&name=film.mp4")
        assert live_one[0] == 404
        (runs / "one" / "videos").rename(runs / "one" / "other")
        (runs / "one" / "videos").symlink_to(tmp_path)
        assert ask(server, "/video?run=one&name=secret.txt")[0] == 404


def test_a_player_may_jump_in_a_video(runs: Path) -> None:
    with served(runs) as server:
        data(server)
        status, headers, body = ask(server, "/video?run=one&name=film.mp4", Range="bytes=2-4")
        assert (status, body, headers["Content-Range"]) == (206, b"234", "bytes 2-4/10")
        assert ask(server, "/video?run=one&name=film.mp4", Range="bytes=7-")[2] == b"789"
        assert ask(server, "/video?run=one&name=film.mp4", Range="bytes=10-")[0] == 416


def test_answers_tell_browsers_to_trust_nobody_else(runs: Path) -> None:
    with served(runs) as server:
        _, headers, body = ask(server, "/", Accept_Encoding="gzip")
        assert b"two words" in gzip.decompress(body)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
        assert re.fullmatch(r"sunrise ?", headers["Server"])


def test_slow_and_many_clients_keep_nobody_else_out_for_long(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PATIENCE", 0.6)
    with served(runs) as server:
        slow = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(watch.CONNECTIONS)]
        begun = time.monotonic()
        for each in slow:
            each.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        time.sleep(0.1)
        status = ask(server, "/data")[0]  # no room, and told so at once
        assert status == 503
        dripping = slow[0]
        ended = False
        while not ended and time.monotonic() - begun < 10:
            try:
                dripping.sendall(b"x")
            except OSError:
                ended = True
            time.sleep(0.05)
        assert ended
        assert time.monotonic() - begun < 5
        assert ask(server, "/data")[0] == 200
        for each in slow:
            each.close()


def test_a_page_follows_its_runs(runs: Path, browser: Any) -> None:
    with served(runs) as server, opened(browser, server.address) as page:
        assert "1 failed" in page.inner_text("#progress")
        assert "out of memory" in page.inner_text("#progress")
        assert "sunrise resume" in page.inner_text("#progress .command")
        page.wait_for_selector("#live.live")
        page.click("#runs summary >> text=one")
        page.click("#runs .sort >> text=run")
        page.click("#runs .sort >> text=run")
        with (runs / "one" / "eval.csv").open("a") as file:
            file.write("4000,77.0,0,77.0,77.0,10\n")
        until(page, "sunriseReport.report.runs.one.eval.mean_return.length === 4")
        assert "77" in page.inner_text("#runs table")
        assert page.locator("#runs details[open]").count() == 1  # what was open stays so, sorted as it was
        assert page.locator("#runs tbody th").all_inner_texts()[:2] == ["two words", "one"]
        assert page.evaluate("document.activeElement.textContent") == "run"


def test_the_command_serves_until_it_is_told_to_end(runs: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "sunrise", "watch", str(runs), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stderr is not None
        lines: list[str] = []
        while not (lines and (found := re.search(r"http://127\.0\.0\.1:(\d+)/", lines[-1]))):
            lines.append(process.stderr.readline())
            assert lines[-1], "it ended"
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=10)
        connection.request("GET", "/data")
        assert len(json.loads(connection.getresponse().read())["runs"]) == 2
        connection.close()
        process.send_signal(signal.SIGINT)
        lines += process.stderr.readlines()
        assert process.wait(10) == 0
    assert "Ended. The runs go on." in lines[-1]
    assert not [line for line in lines if re.search(r"\| +(jax|tensorboard|gymnasium)\n", line)]
    for arguments, words in ((["/nowhere"], "is no folder"), ([str(runs), "--port", "70000"], "from 0 to 65535")):
        refused = subprocess.run([*command[:1], *command[3:6], *arguments], capture_output=True, text=True, check=False)
        assert refused.returncode == 2
        assert words in refused.stderr


@pytest.mark.slow
def test_a_real_run_is_watched_from_its_start_to_its_end(tmp_path: Path) -> None:
    arguments = "--batch-size 8 --learning-starts 20 --buffer-size 400 --net-arch 8 8 --ensemble-size 3 --log-freq 20"
    length = "--eval-freq 100 --eval-episodes 1 --save-freq 100 --total-timesteps 100000"
    command = f"train sac --env-id Pendulum-v1 {arguments} {length} --run-dir {tmp_path}/runs/one"
    (tmp_path / "runs").mkdir()
    with served(tmp_path / "runs") as server:
        token, sizes = "", []
        seen: dict[str, Any] = {}
        process = subprocess.Popen([sys.executable, "-m", "sunrise", *command.split()], stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 120
            while time.monotonic() < until and not (seen and seen["timesteps"] >= 400):
                change = data(server, token)
                token = change["token"]
                for run in change["runs"]:
                    assert run["timesteps"] >= seen.get("timesteps", 0)
                    seen = run
                    sizes.append(run["timesteps"])
                time.sleep(0.2)
            assert len(sizes) > 2  # it was seen on its way
            assert seen["status"] == "running"
            assert 0 < seen["left"] < 1e6
        finally:
            process.terminate()
            process.wait(60)
        last = data(server, token)["runs"][0]
        assert last["status"] == "stopped"
        assert last["resume"] == f"sunrise resume {tmp_path}/runs/one"
