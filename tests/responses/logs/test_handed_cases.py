"""Logs that break a response matrix in quiet ways, each with the right value."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest

from irteval.errors import InputError
from irteval.responses.importing import import_logs
from irteval.responses.policies.preferences import share_preferred
from irteval.responses.policies.score_values import State, read_scores
from tests.responses.logs.conftest import inspect_document, inspect_sample, lm_eval_row

STRICT, FLEXIBLE = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 1.0)


def scores(frame: pd.DataFrame) -> list[float]:
    return frame.sort_values("item")["score"].tolist()


class TestFilters:
    @pytest.fixture
    def log(self, lm_eval_log):
        rows = [
            lm_eval_row(k, {"exact_match": value}, filter)
            for filter, values in (("strict-match", STRICT), ("flexible-extract", FLEXIBLE))
            for k, value in enumerate(values)
        ]
        return lm_eval_log("org/model", rows)

    @pytest.mark.parametrize(("filter", "mean"), [("strict-match", 0.25), ("flexible-extract", 0.75)])
    def test_one_filter_is_read(self, log, filter, mean):
        frame = import_logs(log, filter=filter).frame
        assert len(frame) == 4
        assert frame["score"].mean() == mean
        assert set(frame["filter"]) == {filter}

    def test_the_default_is_said_and_is_one_of_them(self, log):
        result = import_logs(log)
        assert (len(result.frame), result.frame["score"].mean()) == (4, 0.75)
        assert any("filter 'flexible-extract' by default, others are strict-match" in n for n in result.notes)

    def test_a_filter_that_is_not_there_names_those_that_are(self, log):
        with pytest.raises(
            InputError, match="no filter 'loose', wanted one of flexible-extract, strict-match"
        ):
            import_logs(log, filter="loose")

    def test_rows_without_a_filters_name_are_split_and_refused(self, lm_eval_log):
        rows = [
            lm_eval_row(k, {"exact_match": value}, None)
            for values in (STRICT, FLEXIBLE)
            for k, value in enumerate(values)
        ]
        log = lm_eval_log("org/model", rows)
        with pytest.raises(InputError, match="2 rows a document and no names of filters"):
            import_logs(log)
        assert import_logs(log, filter="#1").frame["score"].mean() == 0.25
        assert import_logs(log, filter="#2").frame["score"].mean() == 0.75

    def test_old_rows_with_one_filter_need_no_choice(self, lm_eval_log):
        log = lm_eval_log("org/model", [lm_eval_row(k, {"acc": v}, None) for k, v in enumerate(STRICT)])
        frame = import_logs(log).frame
        assert frame["score"].mean() == 0.25
        assert set(frame["filter"]) == {"none"}


class TestMetrics:
    @pytest.fixture
    def logs(self, lm_eval_log):
        both = zip((1.0, 1.0, 0.0), (0.0, 1.0, 1.0), strict=True)
        x = [lm_eval_row(k, {"acc": a, "acc_norm": n}) for k, (a, n) in enumerate(both)]
        y = [lm_eval_row(k, {"acc_norm": n}) for k, n in enumerate((1.0, 1.0, 0.0))]
        return [lm_eval_log("org/x", x), lm_eval_log("org/y", y)]

    def test_a_subject_that_lacks_the_metric_has_none(self, logs):
        result = import_logs(logs, metric="acc")
        assert set(result.frame["subject"]) == {"org/x"}
        assert scores(result.frame) == [1, 1, 0]
        assert "quiz: no 'acc' of org/y (there is acc_norm): left out, not filled" in result.notes

    def test_the_default_is_one_metric_for_both(self, logs):
        frame = import_logs(logs).frame
        assert set(frame["metric"]) == {"acc_norm"}
        assert scores(frame[frame["subject"] == "org/x"]) == [0, 1, 1]
        assert scores(frame[frame["subject"] == "org/y"]) == [1, 1, 0]

    def test_all_keeps_both(self, logs):
        assert len(import_logs(logs, metric="all").frame) == 9

    def test_a_metric_that_no_log_has(self, logs):
        with pytest.raises(InputError, match="no metric 'f1', wanted one of acc, acc_norm"):
            import_logs(logs, metric="f1")

    def test_a_metric_that_is_better_when_lower_is_refused(self, lm_eval_log):
        results = {"higher_is_better": {"quiz": {"brier": False, "acc": True}}}
        log = lm_eval_log("org/x", [lm_eval_row(0, {"brier": 0.2, "acc": 1.0})], results=results)
        assert set(import_logs(log).frame["metric"]) == {"acc"}
        with pytest.raises(InputError, match="'brier' is better when lower"):
            import_logs(log, metric="brier")


class TestRepeats:
    @pytest.fixture
    def rerun(self, lm_eval_log):
        """Ten items right, then the first one again, wrong."""
        first = lm_eval_log("org/m", [lm_eval_row(k, {"acc": 1.0}) for k in range(10)])
        later = lm_eval_log("org/m", [lm_eval_row(0, {"acc": 0.0})], date="2026-02-02T03-04-05.000006")
        return [first, later]

    @pytest.mark.parametrize(
        ("policy", "mean"), [("newest", 0.9), ("oldest", 1.0), ("trials", 0.95), ("mean", 0.95), (None, 0.95)]
    )
    def test_a_rerun_is_settled_by_the_policy(self, rerun, policy, mean):
        for order in (rerun, rerun[::-1]):
            frame = import_logs(order, repeats=policy).frame
            assert len(frame) == 10
            assert frame["score"].mean() == pytest.approx(mean)

    def test_trials_are_k_of_n(self, rerun):
        frame = import_logs(rerun).frame
        assert sorted(frame["trials"]) == [1] * 9 + [2]
        responses = import_logs(rerun).responses()
        assert responses.trials is not None
        assert responses.scores.sum() == pytest.approx(9.5)

    def test_error_names_both_places(self, rerun):
        with pytest.raises(
            InputError, match=r"are also in .* line 1, wanted one observation a cell"
        ) as error:
            import_logs(rerun, repeats="error")
        assert (error.value.file, error.value.line) == (str(rerun[1]), 1)

    def test_the_same_file_under_a_later_date_counts_once(self, lm_eval_log):
        log = lm_eval_log("org/m", [lm_eval_row(k, {"acc": 1.0}) for k in range(10)])
        copy = log.with_name(log.name.replace("2026-01-02", "2026-03-02"))
        shutil.copy(log, copy)
        result = import_logs(log.parent)
        assert len(result.frame) == 10
        assert "trials" not in result.frame
        assert result.summary["policies"]["file_copies"] == 1
        assert any("counts once" in note for note in result.notes)

    @pytest.fixture
    def table(self, tmp_path):
        def write(rows):
            path = tmp_path / "responses.csv"
            pd.DataFrame(rows).to_csv(path, index=False)
            return path

        return write

    CELLS = tuple((s, i) for s in ("x", "y") for i in ("a", "b", "c"))

    def test_each_row_twice_equal_is_six_cells(self, table):
        path = table([{"subject": s, "item": i, "score": i == "a"} for s, i in self.CELLS for _ in range(2)])
        result = import_logs(path)
        assert len(result.frame) == 6
        assert "trials" not in result.frame
        assert result.summary["policies"]["repeats"]["equal_copies"] == 6

    def test_each_cell_three_times_different_is_six_cells_with_three_trials(self, table):
        path = table([{"subject": s, "item": i, "score": k == 1} for s, i in self.CELLS for k in range(3)])
        frame = import_logs(path).frame
        assert len(frame) == 6
        assert set(frame["trials"]) == {3}
        assert np.allclose(frame["score"], 1 / 3)

    def test_trials_that_agree_here_and_there_are_no_copies(self, table):
        path = table(
            [
                {"subject": "x", "item": i, "score": s}
                for i, s in zip("aaabbb", (1, 1, 0, 1, 1, 1), strict=True)
            ]
        )
        frame = import_logs(path).frame
        assert frame["trials"].tolist() == [3, 3]
        assert frame["score"].tolist() == pytest.approx([2 / 3, 1])

    def test_a_subject_whose_trials_all_agree_has_as_many_as_the_others(self, table):
        rows = [{"subject": "strong", "item": "a", "score": 1} for _ in range(3)]
        rows += [{"subject": "weak", "item": "a", "score": k == 1} for k in range(3)]
        assert import_logs(table(rows)).frame["trials"].tolist() == [3, 3]

    def test_numbered_trials_that_agree_are_no_copies(self, table):
        path = table([{"subject": "x", "item": "a", "score": 1, "trial": k} for k in (1, 2, 3)])
        assert import_logs(path).frame["trials"].tolist() == [3]

    def test_one_trial_with_two_scores_is_refused(self, table):
        path = table([{"subject": "x", "item": "a", "score": k, "trial": 1} for k in (0, 1)])
        with pytest.raises(InputError, match="for the same trial of the same run"):
            import_logs(path)

    def test_one_name_with_two_revisions_is_two_subjects(self, table):
        path = table(
            [{"subject": "x", "revision": r, "item": i, "score": 1} for r in ("v1", "v2") for i in "abc"]
        )
        frame = import_logs(path).frame
        assert sorted(set(frame["subject"])) == ["x@v1", "x@v2"]
        assert len(frame) == 6

    def test_two_sets_of_weights_under_one_name_are_two_subjects(self, lm_eval_log):
        rows = [lm_eval_row(0, {"acc": 1.0})]
        logs = [
            lm_eval_log(
                "org/m",
                rows,
                date=f"2026-0{k}-02T03-04-05.000006",
                results={"model_name": "org/m", "config": {"model_sha": str(k) * 40}},
            )
            for k in (1, 2)
        ]
        logs[1].write_text(logs[1].read_text() + json.dumps(lm_eval_row(1, {"acc": 0.0})) + "\n")
        result = import_logs(logs)
        assert sorted(set(result.frame["subject"])) == ["org/m@11111111", "org/m@22222222"]
        assert any("2 different weights" in note for note in result.notes)


class TestFailures:
    @pytest.fixture
    def log(self, tmp_path):
        samples = [inspect_sample(f"q{k}", "C" if k < 80 else "I") for k in range(90)]
        samples += [inspect_sample(f"q{k}", ..., error="crash") for k in range(90, 100)]
        path = tmp_path / "log.json"
        path.write_text(json.dumps(inspect_document(samples)))
        return path

    def test_missing_by_default(self, log):
        result = import_logs(log)
        assert len(result.frame) == 100
        assert result.frame["score"].mean() == pytest.approx(0.888889, abs=1e-6)
        assert result.frame["score"].notna().sum() == 90
        assert any("10 error" in note and "missing, 90 are scored" in note for note in result.notes)

    def test_wrong_where_asked(self, log):
        result = import_logs(log, errors="wrong")
        assert result.frame["score"].mean() == pytest.approx(0.8)
        assert any("10 that failed count as wrong" in note for note in result.notes)

    def test_the_real_log_with_errors(self, shared):
        folder = shared / "samples" / "inspect" / "logs" / "errors"
        missing = import_logs(folder, metric="match")
        assert (missing.summary["rows"], missing.summary["scored"]) == (20, 18)
        assert missing.summary["statuses"] == {"ok": 18, "error": 2}
        assert missing.frame["score"].mean() == pytest.approx(6 / 18)
        assert import_logs(folder, metric="match", errors="wrong").frame["score"].mean() == pytest.approx(0.3)

    def test_what_was_never_scored_is_missing_under_both(self, shared):
        folder = shared / "samples" / "inspect" / "logs" / "unscored"
        for errors in ("missing", "wrong"):
            assert import_logs(folder, errors=errors).summary["scored"] == 0


class TestScoreValues:
    VALUES = ("C", "I", "P", "N", "1", True, 0.5, 1.7, -0.2, {"a": 1}, "banana", None)

    def test_each_is_read_as_what_it_is(self):
        read = read_scores(self.VALUES)
        assert read.numbers[:9].tolist() == [1, 0, 0.5, 0, 1, 1, 0.5, 1.7, -0.2]
        assert read.states.tolist() == [State.NUMBER] * 9 + [
            State.NEEDS_KEY,
            State.UNREADABLE,
            State.MISSING,
        ]

    @pytest.fixture
    def log(self, tmp_path):
        def write(*values):
            path = tmp_path / "log.json"
            samples = [inspect_sample(f"q{k}", value) for k, value in enumerate(values)]
            path.write_text(json.dumps(inspect_document(samples)))
            return path

        return write

    def test_the_good_ones(self, log):
        frame = import_logs(log(*self.VALUES[:7], None)).frame
        assert scores(frame.assign(item=frame["native_id"]))[:7] == [1, 0, 0.5, 0, 1, 1, 0.5]
        assert frame["score"].isna().sum() == 1

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (1.7, "score 1.7, wanted a share in \\[0, 1\\]; percentages are read with --scale percent"),
            (-0.2, "score -0.2, wanted a share in \\[0, 1\\]; a correction for guessing is undone"),
            ("banana", "'banana', wanted a number"),
        ],
    )
    def test_the_bad_ones_are_refused_with_their_place(self, log, value, message):
        path = log("C", "I", value)
        with pytest.raises(InputError, match=message) as error:
            import_logs(path, metric="match")
        assert (error.value.file, error.value.line, error.value.field) == (str(path), 3, "match")

    def test_an_object_needs_a_key(self, log):
        path = log({"a": 1, "b": 0.5}, {"a": 0, "b": 0.5})
        with pytest.raises(InputError, match=r"'match' holds several values by name, wanted one of match\.a"):
            import_logs(path, metric="match")
        assert sorted(import_logs(path, metric="match.a").frame["score"]) == [0, 1]

    def test_percentages_are_read_where_asked(self, log):
        assert sorted(import_logs(log(25, 100, 0), scale="percent").frame["score"]) == [0, 0.25, 1]

    def test_a_correction_for_guessing_is_undone(self, log):
        frame = import_logs(log(1, -1 / 3, 1), chance=0.25).frame
        assert sorted(frame["score"]) == pytest.approx([0, 1, 1])


class TestResolvedLists:
    IDS = tuple(f"repo__{k}" for k in range(10))
    SOLVED = (("a", IDS[:6]), ("b", IDS[2:7]), ("c", IDS[4:8]))

    @pytest.fixture
    def lists(self, tmp_path):
        folder = tmp_path / "lists"
        folder.mkdir()
        for name, ids in self.SOLVED:
            (folder / f"{name}.json").write_text(json.dumps({"resolved": list(ids)}))
        (tmp_path / "items.txt").write_text("\n".join(self.IDS))
        return folder

    def test_with_the_list_of_items(self, lists, tmp_path):
        result = import_logs(lists, items=tmp_path / "items.txt")
        assert result.frame.groupby("subject")["score"].mean().to_dict() == {"a": 0.6, "b": 0.5, "c": 0.4}
        assert result.summary["items"] == 10
        assert len(result.frame) == 30
        responses = result.responses()
        assert responses.shape == (3, 10)
        assert (responses.item_means() == 0).sum() == 2

    def test_two_subjects_with_equal_files_are_two(self, lists, tmp_path):
        (lists / "d.json").write_bytes((lists / "a.json").read_bytes())
        frame = import_logs(lists, items=tmp_path / "items.txt").frame
        assert frame.groupby("subject")["score"].mean().to_dict() == {"a": 0.6, "b": 0.5, "c": 0.4, "d": 0.6}

    def test_without_it_the_item_set_is_unknown(self, lists):
        with pytest.raises(InputError, match="item set unknown"):
            import_logs(lists)

    def test_an_id_that_the_list_has_not(self, lists, tmp_path):
        (tmp_path / "short.txt").write_text("\n".join(self.IDS[:5]))
        with pytest.raises(InputError, match="'repo__5' is not in the list"):
            import_logs(lists, items=tmp_path / "short.txt")

    def test_a_report_that_names_the_unresolved_needs_no_list(self, tmp_path):
        report = {
            "resolved_ids": ["x"],
            "unresolved_ids": ["y", "z"],
            "error_ids": ["e"],
            "schema_version": 2,
        }
        (tmp_path / "org__agent.json").write_text(json.dumps(report))
        frame = import_logs(tmp_path / "org__agent.json").frame.set_index("item")
        assert set(frame["subject"]) == {"org/agent"}
        assert frame["score"].dropna().to_dict() == {"x": 1, "y": 0, "z": 0}
        assert frame.loc["e", "status"] == "error"


def test_preferences(tmp_path):
    given = (2, 2, 0, math.nan, 1)
    assert [share_preferred(value) for value in given] == [1, 1, 0.5, None, 0]
    entries = [
        {"instruction": f"do {k}", "generator_1": "base", "generator_2": "new", "preference": value}
        for k, value in enumerate(given)
    ]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(entries))
    frame = import_logs(path).frame.sort_values("line")
    assert frame["score"].tolist()[:3] == [1, 1, 0.5]
    assert math.isnan(frame["score"].iloc[3])
    assert frame["score"].iloc[4] == 0
    assert set(frame["subject"]) == {"new"}
    assert set(frame["variant"]) == {"against=base"}


def test_a_semicolon_table_with_decimal_commas(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbfsubject;item;score\nx;a;0,5\nx;b;1,0\nx;c;\n")
    assert import_logs(path).frame["score"].tolist()[:2] == [0.5, 1.0]


def test_truth_values(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("subject,item,score\nx,a,True\nx,b,False\nx,c,TRUE\nx,d,0\nx,e,yes\nx,f,\n")
    frame = import_logs(path).frame.sort_values("item")
    assert frame["score"].tolist()[:5] == [1, 0, 1, 0, 1]
    assert frame["score"].isna().tolist() == [False] * 5 + [True]


def test_ids_that_look_like_something_else_stay_texts(tmp_path):
    ids = ["None", "NA", "nan", "007", "7", "1e5", "1.0", "1", "null", "TRUE"]
    path = tmp_path / "table.csv"
    path.write_text("subject,item,score\n" + "".join(f"x,{name},1\n" for name in ids))
    result = import_logs(path)
    assert set(result.frame["item"]) == set(ids)
    for suffix in (".parquet", ".csv", ".jsonl"):
        out = tmp_path / f"out{suffix}"
        result.write(out)
        assert set(import_logs(out).frame["item"]) == set(ids)


class TestSharedSamples:
    """All real logs against a table of every metric and filter in them that was made another way."""

    KEYS = ("tool", "task", "item_id", "model", "metric", "filter", "epoch", "run")

    @pytest.fixture
    def expected(self, shared):
        frame = pd.read_parquet(shared / "samples" / "responses_long.parquet")
        return frame.rename(columns={"harness": "tool"})

    @staticmethod
    def mapped(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.rename(
            columns={"subject": "model", "benchmark": "task", "native_id": "item_id", "trial": "epoch"}
        )
        tool = frame["harness"].str.split(" ").str[0]
        epoch = frame["epoch"].fillna(1).astype(int)
        return frame.assign(tool=tool, epoch=epoch, filter=frame["filter"].where(tool == "lm-eval"))

    @pytest.mark.parametrize("source", ["logs", "table"])
    def test_every_metric_and_filter(self, shared, expected, source):
        samples = shared / "samples"
        folders = [samples / name for name in ("lm-eval", "inspect/logs", "helm", "lighteval")]
        sources = folders if source == "logs" else samples / "responses_long.parquet"
        frame = self.mapped(import_logs(sources, metric="all", filter="all").frame)
        # The same log of Inspect as one document is not in the table.
        frame = frame[frame["run"].isin(expected["run"])]
        assert len(frame) == len(expected) == 3610
        both = expected.merge(frame, on=list(self.KEYS), suffixes=("_expected", ""))
        assert len(both) == 3610
        assert both["score"].fillna(-1).eq(both["score_expected"].fillna(-1)).all()
        assert both["status"].eq(both["status_expected"]).all()

    def test_the_defaults_give_one_row_a_cell(self, shared, expected):
        result = import_logs(shared / "samples" / "responses_long.parquet")
        frame = result.frame
        assert not frame.duplicated(["subject", "item"]).any()
        assert len(frame) == len(expected[["model", "task", "item_id"]].drop_duplicates())
        assert result.responses().cells == frame["score"].notna().sum()


def test_a_source_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        import_logs(str(tmp_path / "nowhere"))
