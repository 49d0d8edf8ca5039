"""The command line of the simulator."""

from floe.testing import sim_run


def test_a_good_seed_prints_its_options_and_one_verdict(capsys):
    assert sim_run.main(["--seed", "14", "--seconds", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed 14"
    assert any(line.startswith("  store = ") for line in lines)
    assert lines[-1].startswith("seed 14 ok")


def test_a_bad_seed_prints_what_failed_and_how_to_replay_it(capsys, mutate, tmp_path):
    trace = tmp_path / "trace"
    with mutate("delete_without_asking_holders"):
        assert sim_run.main(["--seed", "14", "--seconds", "2", "--quiet", "--trace", str(trace)]) == 1
    output = capsys.readouterr().out
    assert "seed 14 FAILED" in output
    assert "REFERENCED OBJECT MISSING" in output
    assert "python -m floe.testing.sim_run --seed 14 --seconds 2.0" in output
    assert "start broker-1" in trace.read_text()
