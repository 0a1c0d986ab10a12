"""What needs no cluster."""

import json
import unittest
from types import SimpleNamespace

from lutra_ray import conversation
from lutra_ray.exposition import merge
from lutra_ray.message import end_to_end
from lutra_ray.scaling import QueuePolicy
from lutra_ray.settings import Settings


def chat(*texts: str, **others: object) -> bytes:
    roles = ["system"] + ["user", "assistant"] * len(texts)
    return json.dumps({"messages": [{"role": r, "content": t} for r, t in zip(roles, texts)], **others}).encode()


class Conversations(unittest.TestCase):
    def test_turns_of_a_conversation_have_one_key(self) -> None:
        first = conversation.key(chat("Be brief.", "Hello"))
        self.assertEqual(first, conversation.key(chat("Be brief.", "Hello", "Hi.", "And?", seed=7)))
        self.assertNotEqual(first, conversation.key(chat("Be brief.", "Good day")))

    def test_what_has_no_beginning_has_no_key(self) -> None:
        for body in (b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"messages": []}', b'{"messages": 7}'[:-1]):
            self.assertIsNone(conversation.key(body), body[:20])

    def test_prompts_and_inputs_have_keys(self) -> None:
        for name in ("prompt", "input"):
            self.assertIsNotNone(conversation.key(json.dumps({name: "What is 2 + 2?"}).encode()))


class Texts(unittest.TestCase):
    def test_metrics_of_replicas_are_told_apart(self) -> None:
        text = '# HELP a An A.\n# TYPE a counter\na{x="1"} 1\n# TYPE b histogram\nb_bucket{le="1"} 0\nb_sum 2\n'
        self.assertEqual(
            merge({"one": text, "two": text}),
            "# HELP a An A.\n# TYPE a counter\n"
            'a{replica="one",x="1"} 1\na{replica="two",x="1"} 1\n'
            "# TYPE b histogram\n"
            'b_bucket{replica="one",le="1"} 0\nb_sum{replica="one"} 2\nb_bucket{replica="two",le="1"} 0\nb_sum{replica="two"} 2\n',
        )

    def test_headers_of_one_connection_are_not_passed_on(self) -> None:
        given = [
            (b"Connection", b"X-Mine"),
            (b"X-Mine", b"1"),
            (b"TE", b"trailers"),
            (b"X-Twice", b"1"),
            (b"X-Twice", b"2"),
            (b"Host", b"a"),
        ]
        self.assertEqual(end_to_end(given, b"host"), [(b"X-Twice", b"1"), (b"X-Twice", b"2")])


class Numbers(unittest.TestCase):
    def test_replicas_follow_sequences_and_waiting_requests(self) -> None:
        for metrics, queued, want in (
            (None, 0, 0),
            ({"sequences": {"a": 5.0, "b": 12.0}}, 0, 3),
            ({"sequences": {"a": 5.0}}, 20, 4),
        ):
            ctx = SimpleNamespace(aggregated_metrics=metrics, total_queued_requests=queued)
            self.assertEqual(QueuePolicy(8)(ctx)[0], want)  # type: ignore[arg-type]

    def test_settings_that_cannot_be_are_refused_by_name(self) -> None:
        for given, said in (
            ({"min_replicas": 3, "max_replicas": 2}, "max_replicas"),
            ({"arguments": "--model m --addr=0.0.0.0:80"}, "--addr"),
            ({"thread": 4}, "thread"),
            ({"threads": "many"}, "threads"),
        ):
            with self.assertRaisesRegex(ValueError, said):
                Settings(**given)  # type: ignore[arg-type]
        self.assertEqual(Settings(arguments="--model 'a b'").command()[-2:], ["--model", "a b"])


if __name__ == "__main__":
    unittest.main()
