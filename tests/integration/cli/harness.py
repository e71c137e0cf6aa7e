"""What the tests of the command line tool share: real server processes, and the
tool as a person calls it.
"""
import json
import os
import pathlib
import pty
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

ROWHOUSE = SERVER = TRAIN_ROWS = None  # Set by `main`.
DIM = 4


class Cluster:
    """Server processes on free ports; `more` is added to their configuration."""

    def __init__(self, folder, cluster_id="cli-test", server_count=2, more=""):
        self.config = pathlib.Path(folder) / f"{cluster_id}.textproto"
        self.config.write_text(
            f'cluster_id: "{cluster_id}"\nserver_count: {server_count}\n'
            f"thread_count: 1\nmemory_limit_bytes: 4294967296\n{more}\n")
        self.processes, self.addresses = [], []
        for index in range(server_count):
            process, address = self._serve(index, "127.0.0.1:0")
            self.processes.append(process)
            self.addresses.append(address)

    def _serve(self, index, listen):
        process = subprocess.Popen(
            [SERVER, f"--config={self.config}", f"--server_index={index}",
             f"--listen={listen}", "--log_level=error"],
            stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        assert "listening on " in line, f"no listening line: {line!r}"
        return process, line.split("listening on ")[1].strip()

    def kill(self, index):
        self.processes[index].kill()
        self.processes[index].wait()

    def restart(self, index):
        """Starts a server that was killed, at its address; it has no table."""
        self.processes[index].stdout.close()
        self.processes[index], _ = self._serve(index, self.addresses[index])

    def freeze(self, index):
        """Stops a server where it stands; returns once it does nothing."""
        process = self.processes[index]
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)

    def thaw(self, index):
        self.processes[index].send_signal(signal.SIGCONT)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()


def start(test, *arguments, servers):
    """The tool, under way; it ends with the test."""
    process = subprocess.Popen(
        [ROWHOUSE, *arguments, "--servers=" + ",".join(servers)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    test.addCleanup(process.kill)
    return process


class SilentAt:
    """Stands before a server, and falls silent for good once a client calls a
    method: connections stay, and nothing passes in either direction."""

    def __init__(self, address, method):
        host, port = address.rsplit(":", 1)
        self.server = (host, int(port))
        self.method = method.encode()
        self.silent = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:  # Closed.
                return
            server = socket.create_connection(self.server)
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=pair,
                                 daemon=True).start()

    def _pass_on(self, source, target):
        try:
            while data := source.recv(1 << 16):
                if self.method in data:  # As a path; gRPC sends it as it is.
                    self.silent.set()
                if not self.silent.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # The other end has gone.
            pass


def run(*arguments, servers=None, stdin="", env=None):
    """Runs `rowhouse`; stdin is no terminal."""
    environment = {k: v for k, v in os.environ.items()
                   if k != "ROWHOUSE_SERVERS"}
    if servers:
        environment["ROWHOUSE_SERVERS"] = ",".join(servers)
    environment.update(env or {})
    return subprocess.run([ROWHOUSE, *arguments], input=stdin, text=True,
                          capture_output=True, env=environment, timeout=120)


def npy(path, descr, shape, data, order="False"):
    head = (f"{{'descr': '{descr}', 'fortran_order': {order}, "
            f"'shape': {shape}, }}").encode()
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
                     + data)


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.checkpoints = cls.folder / "checkpoints"
        cls.checkpoints.mkdir()
        cls.checkpoint_config = (
            f'checkpoint {{ directory: "{cls.checkpoints}" }}')
        cls.cluster = Cluster(cls.folder, more=cls.checkpoint_config)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()
        cls.temporary.cleanup()

    def tearDown(self):
        for table in self.json("list")["tables"]:
            self.ok("delete", table["table"], "--yes")
        # A base only after what is based on it.
        for checkpoint in self.json("checkpoint", "list")["checkpoints"][::-1]:
            self.ok("checkpoint", "delete", checkpoint["checkpoint"], "--yes")

    def call(self, *arguments, **options):
        return run(*arguments, servers=self.cluster.addresses, **options)

    def ok(self, *arguments, **options):
        done = self.call(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json(self, *arguments, **options):
        return json.loads(self.ok(*arguments, "--json", **options))

    def refused(self, code, message, *arguments, **options):
        """Fails with this exit code, a message and nothing on stdout."""
        done = self.call(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def start(self, *arguments):
        return start(self, *arguments, servers=self.cluster.addresses)

    def start_recording(self, table, log, *more):
        """A recorder that has begun."""
        recorder = self.start("record", table, str(log), "--json", *more)
        self.assertIn("recording", recorder.stderr.readline())
        return recorder

    def train(self):
        """Ten events of the example's table."""
        subprocess.run([TRAIN_ROWS, *self.cluster.addresses], check=True,
                       capture_output=True, timeout=120)

    def on_terminal(self, *arguments, prompt=None, answer="", env=None):
        """Runs on a terminal, where it types `answer` after `prompt`; returns
        exit code and what was shown."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(ROWHOUSE, [ROWHOUSE, *arguments, "--servers="
                                 + ",".join(self.cluster.addresses)],
                      {**os.environ, **(env or {})})
        shown = ""
        try:
            while True:
                shown += os.read(terminal, 4096).decode()
                if prompt and prompt in shown:
                    prompt = None
                    os.write(terminal, answer.encode())
        except OSError:  # The other end has closed.
            pass
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown

    def create(self, table="words", *more):
        self.ok("create", table, "--rows=10", f"--dim={DIM}", "--dtype=fp32",
                "--reduction=sum", "--max-rows=64", *more)


def main():
    """usage: TEST ROWHOUSE SERVER TRAIN_ROWS [UNITTEST_ARGUMENT ...]"""
    global ROWHOUSE, SERVER, TRAIN_ROWS
    ROWHOUSE, SERVER, TRAIN_ROWS = sys.argv[1:4]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[4:]],
                  verbosity=2)
