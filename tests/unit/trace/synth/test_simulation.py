"""Time and lanes of simulated processes."""

from warmset.trace.synth.simulation import Lane, Simulation


def test_processes_go_on_in_order_of_time_and_then_of_waiting():
    simulation, seen = Simulation(), []

    def waits(name, *times):
        for time_ms in times:
            yield time_ms
            seen.append((simulation.now_ms, name))

    simulation.start(waits("a", 5, 30), 0)
    simulation.start(waits("b", 5, 20), 0)
    while simulation.step():
        pass
    assert seen == [(5, "a"), (5, "b"), (20, "b"), (30, "a")]


def test_a_lane_holds_so_many_and_serves_who_waits_longest():
    simulation, lane, seen = Simulation(), Lane(2), []

    def works(name, hold_ms):
        yield lane
        seen.append((simulation.now_ms, name, "in"))
        yield simulation.now_ms + hold_ms
        seen.append((simulation.now_ms, name, "out"))
        simulation.release(lane)

    for name, hold_ms in (("a", 10), ("b", 30), ("c", 10), ("d", 10)):
        simulation.start(works(name, hold_ms), 0)
    while simulation.step():
        pass
    assert [(time_ms, name) for time_ms, name, what in seen if what == "in"] == [
        (0, "a"),
        (0, "b"),
        (10, "c"),
        (20, "d"),
    ]
    assert lane.num_free == 2
    assert not lane.waiting


def test_nothing_is_next_when_nobody_is_left():
    simulation = Simulation()
    assert simulation.next_ms is None
    assert not simulation.step()
