"""The simulation of scaling: cases that can be worked out by hand, and what must hold for all."""

import pytest

from scaling_simulation import Measured, simulate

EVEN = Measured(job=2.0, variation=0.0, driver=0.0)


def test_equal_jobs_take_whole_rounds():
    assert simulate(10, 4, EVEN).seconds == pytest.approx(6.0)  # 4, 4 and 2 jobs
    assert simulate(10, 4, EVEN).efficiency == pytest.approx(20 / 24)
    assert simulate(0, 4, EVEN).seconds == 0.0


def test_loading_comes_before_the_first_job():
    assert simulate(4, 2, Measured(job=2.0, variation=0.0, driver=0.0, load=5.0)).seconds == pytest.approx(9.0)


def test_the_driver_is_the_limit_of_many_workers():
    # 100 jobs at 0.1 s each are 10 s of driver, however many workers there are.
    slow = Measured(job=1.0, variation=0.0, driver=0.1)
    assert simulate(100, 100, slow).seconds == pytest.approx(11.0)
    assert simulate(100, 50, slow).seconds == pytest.approx(11.0)
    assert simulate(100, 2, slow).seconds == pytest.approx(50.2)


def test_deaths_cost_time_and_no_job():
    calm, rough = Measured(1.0, 0.2, 0.001, 10.0), Measured(1.0, 0.2, 0.001, 10.0, between_deaths=20.0)
    found = simulate(500, 8, rough)
    assert simulate(500, 8, calm).repeated == 0
    # A job of a second is hit with probability 1 - exp(-1/20), so of 500 about 26 are done again.
    assert 10 < found.repeated < 50
    assert found.seconds > simulate(500, 8, calm).seconds
