"""HELM, lighteval, OLMES, Every Eval Ever, the Open LLM Leaderboard, and tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from irteval.errors import InputError
from irteval.responses.importing import import_logs
from tests.responses.logs.conftest import lm_eval_row


class TestHelm:
    @pytest.fixture
    def runs(self, shared) -> Path:
        return shared / "samples" / "helm" / "benchmark_output" / "runs"

    def test_scores_are_those_of_the_stats(self, runs):
        result = import_logs(runs / "s1")
        means = result.frame.groupby("subject")["score"].mean()
        for folder in sorted((runs / "s1").glob("simple_mcqa*")):
            stats = json.loads((folder / "stats.json").read_text())
            subject = json.loads((folder / "run_spec.json").read_text())["adapter_spec"]["model"]
            published = [s["mean"] for s in stats if s["name"] == {"name": "exact_match", "split": "test"}]
            assert means[subject] == pytest.approx(published[0])
        assert set(result.frame["metric"]) == {"exact_match"}
        assert any("statistics that are no main metric" in note for note in result.notes)

    def test_another_statistic_by_its_name(self, runs):
        assert set(import_logs(runs / "s1", metric="prefix_exact_match").frame["metric"]) == {
            "prefix_exact_match"
        }

    def test_a_subset_has_the_items_of_the_whole(self, runs):
        """Ids are positions; the texts are in instances.json of the one, in scenario_state.json of both."""
        whole, part = import_logs(runs / "s1").frame, import_logs(runs / "subset").frame
        assert set(part["item"]) <= set(whole["item"])
        assert len(part) == 10

    def test_perturbations_are_variants(self, runs, tmp_path):
        folder = shutil.copytree(next((runs / "subset").glob("simple*")), tmp_path / "run")
        path = folder / "per_instance_stats.json"
        path.chmod(0o600)
        entries = json.loads(path.read_text())
        entries += [
            entry | {"perturbation": {"name": "typos", "computed_on": "perturbed"}} for entry in entries[:3]
        ]
        path.write_text(json.dumps(entries))
        frame = import_logs(folder).frame
        assert len(frame) == 13
        assert set(frame["variant"].dropna()) == {"perturbation=typos"}
        assert frame["item"].nunique() == 10

    def test_a_count_of_zero_is_missing(self, tmp_path):
        stat = {"name": {"name": "exact_match", "split": "test"}, "count": 0, "sum": 0}
        entry = {"instance_id": "id1", "train_trial_index": 0, "stats": [stat]}
        folder = tmp_path / "suite" / "quiz:subject=maths,model=org_name"
        folder.mkdir(parents=True)
        (folder / "per_instance_stats.json").write_text(json.dumps([entry]))
        frame = import_logs(folder).frame
        assert frame["score"].isna().all()
        assert frame["subject"].tolist() == ["org/name"]
        assert frame["item"].tolist() == ["quiz:subject=maths/id1"]

    def test_a_document_that_is_cut_short(self, runs, tmp_path):
        path = tmp_path / "per_instance_stats.json"
        content = next((runs / "subset").glob("simple*/per_instance_stats.json")).read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(InputError, match="not JSON") as error:
            import_logs(path)
        assert error.value.line is not None


class TestLighteval:
    def test_scores_are_those_of_the_results(self, shared):
        folder = shared / "samples" / "lighteval" / "out"
        frame = import_logs(folder).frame
        means = frame.groupby(["subject", "benchmark"])["score"].mean()
        for path in (folder / "results").rglob("*.json"):
            document = json.loads(path.read_text())
            subject = document["config_general"]["model_name"]
            assert means[subject, "toy_mc|0"] == pytest.approx(document["results"]["toy_mc|0"]["acc"])
            assert means[subject, "toy_gen|2"] == pytest.approx(document["results"]["toy_gen|2"]["em"])

    def test_a_file_that_is_cut_short(self, shared, tmp_path):
        source = next((shared / "samples" / "lighteval" / "out").rglob("details_toy_mc*.parquet"))
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes()[:-100])
        with pytest.raises(InputError, match="not a readable parquet file"):
            import_logs(path)


class TestOlmes:
    def test_predictions(self, tmp_path):
        rows = [
            {
                "doc_id": k,
                "native_id": f"Q{k}",
                "metrics": {"acc_raw": k % 2, "acc_per_char": 1},
                "task_hash": "t",
            }
            for k in range(4)
        ]
        (tmp_path / "task-000-arc_easy-predictions.jsonl").write_text("\n".join(map(json.dumps, rows)))
        about = {
            "task_name": "arc_easy",
            "model_config": {"model": "org/m", "revision": "step500"},
            "task_config": {"primary_metric": "acc_raw", "num_shots": 5},
        }
        (tmp_path / "task-000-arc_easy-metrics.json").write_text(json.dumps(about))
        frame = import_logs(tmp_path).frame
        assert set(frame["subject"]) == {"org/m@step500"}
        assert set(frame["checkpoint_step"]) == {500}
        assert set(frame["metric"]) == {"acc_raw"}
        assert set(frame["variant"]) == {"shots=5"}
        assert sorted(frame["item"]) == [f"arc_easy/Q{k}" for k in range(4)]
        assert frame["score"].mean() == 0.5


class TestEveryEvalEver:
    def test_what_is_written_is_read_again(self, shared, tmp_path):
        result = import_logs(shared / "samples" / "inspect" / "logs" / "base")
        files = result.write_every_eval_ever(tmp_path / "out")
        assert len(files) == 6
        again = import_logs(tmp_path / "out", format="every-eval-ever").frame
        keys = ["subject", "benchmark", "native_id"]
        both = result.frame.merge(again, on=keys, suffixes=("", "_again"))
        assert len(both) == len(again) == len(result.frame)
        assert both["score"].eq(both["score_again"]).all()
        assert both["content_hash"].eq(both["content_hash_again"]).all()
        assert both["item"].eq(both["item_again"]).all()

    def test_what_has_no_score_is_written_as_an_error(self, shared, tmp_path):
        result = import_logs(shared / "samples" / "inspect" / "logs" / "errors")
        result.write_every_eval_ever(tmp_path)
        again = import_logs(tmp_path, format="every-eval-ever")
        assert again.summary["scored"] == 18

    def test_an_error_has_no_score(self, tmp_path):
        row = {"evaluation_id": "e", "model_id": "m", "evaluation_name": "quiz", "sample_id": "1"}
        rows = [row | {"error": "timeout", "evaluation": {"score": None, "is_correct": False}}]
        rows += [row | {"sample_id": "2", "evaluation": {"score": 0.25, "is_correct": False}}]
        path = tmp_path / "x_samples.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        result = import_logs(path)
        assert result.summary["statuses"] == {"ok": 1, "error": 1}
        assert result.frame["score"].max() == 0.25


class TestOpenLlmLeaderboard:
    NAME = "details_harness|arc:challenge|25_2023-08-01T00-00-00.000000.parquet"

    @pytest.fixture
    def folder(self, tmp_path):
        folder = tmp_path / "details_org__model" / "2023-08-01"
        folder.mkdir(parents=True)
        return folder

    def test_metrics_in_one_column(self, folder):
        pd.DataFrame(
            {
                "example": ["a?", "b?", "c?"],
                "metrics": [
                    {"acc": 1.0, "acc_norm": 0.0},
                    {"acc": 0.0, "acc_norm": 1.0},
                    {"acc": 1.0, "acc_norm": 1.0},
                ],
                "predictions": [[-1.0, -2.0], [-1.0, -2.0], [-1.0, -2.0]],
                "gold": [0, 1, 1],
            }
        ).to_parquet(folder / self.NAME)
        result = import_logs(folder, metric="acc")
        assert set(result.frame["subject"]) == {"org/model"}
        assert set(result.frame["benchmark"]) == {"harness|arc:challenge|25"}
        assert result.frame["score"].mean() == pytest.approx(2 / 3)
        assert any("1 accuracies are not those of the most likely choice" in note for note in result.notes)

    def test_a_column_a_metric(self, folder):
        frame = pd.DataFrame(
            {"query": ["a?", "b?"], "acc": [1.0, 0.0], "gold": [0, 1], "predictions": [[0.0], [0.0]]}
        )
        frame.to_parquet(folder / self.NAME)
        assert import_logs(folder).frame["score"].tolist() == [1, 0]

    def test_the_second_leaderboard_is_read_as_lm_eval(self, tmp_path):
        folder = tmp_path / "org__model"
        folder.mkdir()
        path = folder / "samples_leaderboard_ifeval_2024-06-01T00-00-00.000000.jsonl"
        rows = [
            lm_eval_row(k, {"prompt_level_strict_acc": k == 0, "inst_level_strict_acc": [True]})
            for k in range(2)
        ]
        path.write_text("\n".join(map(json.dumps, rows)))
        frame = import_logs(folder).frame
        assert set(frame["metric"]) == {"prompt_level_strict_acc"}
        assert sorted(frame["score"]) == [0, 1]


class TestTables:
    def test_a_wide_table_is_read_where_it_is_named(self, tmp_path):
        path = tmp_path / "wide.csv"
        path.write_text("model,a,b\nx,1,0\ny,,1\n")
        frame = import_logs(path).frame
        assert frame.set_index(["subject", "item"])["score"].to_dict() == {
            ("x", "a"): 1,
            ("x", "b"): 0,
            ("y", "b"): 1,
        }
        (tmp_path / "wide.csv").rename(tmp_path / "numbers.csv")
        with pytest.raises(InputError, match="no responses in 0 logs and 1 other files"):
            import_logs(tmp_path)

    def test_items_of_one_name_in_two_benchmarks(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("subject,item,score,task\nx,1,1,a\nx,1,0,b\nx,2,0,b\n")
        assert set(import_logs(path).frame["item"]) == {"a/1", "b/1", "2"}

    def test_successes_of_trials(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("subject,item,successes,trials\nx,a,3,4\nx,b,0,5\n")
        frame = import_logs(path).frame
        assert frame["score"].tolist() == [0.75, 0]
        assert frame["trials"].tolist() == [4, 5]

    def test_trials_add_up_over_runs(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("subject,item,score,trials,run\nx,a,0.75,4,1\nx,a,0,2,2\n")
        frame = import_logs(path).frame
        assert frame["score"].tolist() == [0.5]
        assert frame["trials"].tolist() == [6]

    def test_a_time_an_answer_makes_reruns(self, tmp_path):
        path = tmp_path / "long.csv"
        rows = ["x,a,0,2026-03-01T00:00:00", "x,a,1,2026-01-01T00:00:00", "x,b,1,2026-01-01T00:00:00"]
        path.write_text("\n".join(["subject,item,score,time", *rows, rows[-1]]))
        for policy, score in (("newest", 0), ("oldest", 1), ("trials", 0.5)):
            frame = import_logs(path, repeats=policy).frame.set_index("item")
            assert frame.loc["a", "score"] == score
            assert frame.loc["b", "score"] == 1
        assert frame.loc["a", "time"] == "2026-03-01T00:00:00+00:00"

    def test_columns_that_are_not_read_are_named(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("subject,item,score,colour,cost\nx,a,1,red,0.25\n")
        result = import_logs(path)
        assert "long.csv: left aside colour" in result.notes
        assert result.frame["cost"].tolist() == [0.25]

    def test_scores_that_hold_several_values(self, tmp_path):
        path = tmp_path / "long.jsonl"
        path.write_text('{"subject": "x", "item": "a", "score": {"exact": 1, "near": 0.5}}\n')
        with pytest.raises(InputError, match="'score' holds several values by name"):
            import_logs(path, metric="score")
        assert import_logs(path, metric="score.near").frame["score"].tolist() == [0.5]

    def test_a_bad_score_is_named_with_its_line(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("subject,item,score\nx,a,1\nx,b,banana\n")
        with pytest.raises(InputError, match="'banana', wanted a number") as error:
            import_logs(path)
        assert (error.value.file, error.value.line) == (str(path), 3)


class TestAliases:
    @pytest.fixture
    def table(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("subject,item,score\norg/Model,a,1\norg__model,b,0\n")
        return path

    def test_they_are_reported_and_kept_apart(self, table):
        result = import_logs(table)
        assert result.summary["subjects"] == 2
        assert any("possibly one subject, kept apart" in note for note in result.notes)

    def test_they_are_put_together_where_asked(self, table, tmp_path):
        (tmp_path / "names.json").write_text(json.dumps({"org__model": "org/Model"}))
        result = import_logs(table, aliases=tmp_path / "names.json")
        assert set(result.frame["subject"]) == {"org/Model"}
        assert any("1 runs renamed" in note for note in result.notes)


class TestItemLists:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("items.txt", "a\nb\nc\n"),
            ("items.json", '["a", "b", "c"]'),
            ("objects.json", '[{"instance_id": "a"}, {"instance_id": "b"}, {"instance_id": "c"}]'),
            ("items.csv", "item,benchmark\na,x\nb,x\nc,x\n"),
            ("items.jsonl", '{"instance_id": "a"}\n{"instance_id": "b"}\n{"instance_id": "c"}\n'),
        ],
    )
    def test_items_without_a_response_are_counted(self, tmp_path, name, content):
        (tmp_path / name).write_text(content)
        (tmp_path / "long.csv").write_text("subject,item,score\nx,a,1\nx,z,0\n")
        result = import_logs(tmp_path / "long.csv", items=tmp_path / name)
        assert (result.summary["items"], result.summary["items_without_response"]) == (4, 2)
        assert any("2 of 3 listed items have no response" in note for note in result.notes)
        assert any("1 items of the logs are not in the list" in note for note in result.notes)

    def test_an_item_that_is_there_twice(self, tmp_path):
        (tmp_path / "items.txt").write_text("a\na\n")
        (tmp_path / "long.csv").write_text("subject,item,score\nx,a,1\n")
        with pytest.raises(InputError, match="'a' is there 2 times"):
            import_logs(tmp_path / "long.csv", items=tmp_path / "items.txt")
