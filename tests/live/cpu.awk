# SPDX-License-Identifier: Apache-2.0
# cpu.awk RESULT - what emulate --json printed of a run by the virtual clock: its
# steps computed for as long as the process had a processor.  It also started
# and ended, so that they are less than all; they are more than a quarter, so
# that four times as much would be seen.
/"cpu_s":/ { cpu = $2 + 0 }
/"steps": \[/ { listed = 1 }
listed && /"compute_s":/ { computed += $2 }
END {
    print "computed " computed " s in steps, CPU time " cpu " s"
    exit !(computed > 0.25 * cpu && computed <= cpu)
}
