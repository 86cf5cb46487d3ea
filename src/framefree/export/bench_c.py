"""The test-bench in C: recorded steps of a run, and a program that replays them.

Two passes go over the record: each step from its recorded memory, which is judged, and from the
first memory on, which shows how differences grow.
"""

from dataclasses import dataclass

import numpy as np

from framefree.export.block import BlockPort, StepBlock

LIMIT, SINGLE_LIMIT = 1e-12, 1e-4
"""Largest difference that a replay allows: relative, and of the recorded span in single."""
FLAT = 1e-3
"""Share of the widest span of a port below which the span of an entry is not told apart from it."""

MAIN = """\
/* Test-bench of {name}, made by framefree: replays recorded.csv and reports the largest difference.
 *
 * ./bench [FILE [LIMIT]]   exit code 0 where every step, from its recorded memory, is within LIMIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "{name}.h"

enum {{ INPUTS = {inputs}, MEMORY = {memory}, OUTPUTS = {outputs}, SIGNALS = {signals} }};
enum {{ RESULTS = OUTPUTS + MEMORY + SIGNALS, COLUMNS = INPUTS + MEMORY + RESULTS }};
enum {{ LINE = {line} }};

typedef {name}_real real;

/* Differences are relative to these: one for every output, next memory and signal. */
static const double scale[RESULTS + 1] = {{
{scale}
}};
static const char *const label[RESULTS + 1] = {{
{labels}
}};
static const int judged = {judged};

static char line[LINE];
static double row[COLUMNS];
static {name}_memory memory;
{declarations}static {name}_output out;
static real result[RESULTS + 1];

static int read_row(FILE *file)
{{
    char *at = line, *end;
    int k;
    if (fgets(line, LINE, file) == NULL) {{
        return 0;
    }}
    for (k = 0; k < COLUMNS; ++k) {{
        row[k] = strtod(at, &end);
        if (end == at) {{
            fprintf(stderr, "the record has a line with %d numbers instead of %d\\n", k, COLUMNS);
            exit(2);
        }}
        at = *end == ',' ? end + 1 : end;
    }}
    return 1;
}}

static void take(void *target, int count, const double *from)
{{
    real *to = target;
    int k;
    for (k = 0; k < count; ++k) {{
        to[k] = (real)from[k];
    }}
}}

static long replay(const char *path, int free_running, double *worst, int *where)
{{
    FILE *file = fopen(path, "r");
    long step = 0;
    int k;
    *worst = 0.0;
    *where = 0;
    if (file == NULL || fgets(line, LINE, file) == NULL || fgets(line, LINE, file) == NULL) {{
        fprintf(stderr, "cannot read %s\\n", path);
        exit(2);
    }}
    while (read_row(file)) {{
{takes}        if (!free_running || step == 0) {{
            take(&memory, MEMORY, row + INPUTS);
        }}
{tell}        {name}_advance(&memory{passed}, &out);
{gather}        for (k = 0; k < (free_running ? OUTPUTS : judged); ++k) {{
            double off = fabs((double)result[k] - row[INPUTS + MEMORY + k]) / scale[k];
            if (!(off <= *worst)) {{
                *worst = off;
                *where = k;
            }}
        }}
        ++step;
    }}
    fclose(file);
    return step;
}}

int main(int count, char **words)
{{
    const char *path = count > 1 ? words[1] : "recorded.csv";
    const double limit = count > 2 ? atof(words[2]) : {limit};
    double worst, drift;
    int where, other;
    const long steps = replay(path, 0, &worst, &where);
    replay(path, 1, &drift, &other);
    printf("steps %ld\\n", steps);
    printf("largest_difference %.3e %s\\n", worst, label[where]);
    printf("free_running_difference %.3e %s\\n", drift, label[other]);
    return worst <= limit ? 0 : 1;
}}
"""


@dataclass(frozen=True)
class RecordedSteps:
    """Steps of a block along a run: what went in, and what the kernel on the desk gave.

    Attributes
    ----------
    block : StepBlock
    inputs, memory, outputs, following, signals : (rows, n)
        Inputs in the order of the block, memory before and after each step (all of it, what is held
        too), outputs, signals.
    """

    block: StepBlock
    inputs: np.ndarray
    memory: np.ndarray
    outputs: np.ndarray
    following: np.ndarray
    signals: np.ndarray

    @property
    def rows(self) -> int:
        """Number of steps."""
        return len(self.inputs)

    @property
    def table(self) -> np.ndarray:
        """All columns of the record."""
        parts = (self.inputs, self.memory, self.outputs, self.following, self.signals)
        return np.hstack(parts)

    @property
    def results(self) -> np.ndarray:
        """What a step gives: outputs, next memory, signals."""
        return np.hstack([self.outputs, self.following, self.signals])

    @property
    def result_ports(self) -> tuple[BlockPort, ...]:
        """The ports of all that a step gives."""
        return (*self.block.outputs, *self.block.memory, *self.block.signal_ports)

    def scales(self, single: bool) -> np.ndarray:
        """Return what differences are relative to, for every number that a step gives.

        In double precision the largest value of its port; in single its own span over the record.
        A port that moves by rounding alone is constant: its largest value counts then too.
        """
        results, scales, at = self.results, [], 0
        for port in self.result_ports:
            part = np.abs(results[:, at : at + port.size])
            largest = part.max(initial=0.0)
            own = np.full(port.size, largest)
            if single and self.rows:
                own = np.ptp(results[:, at : at + port.size], axis=0)
                widest = own.max(initial=0.0)
                own = np.maximum(own, FLAT * widest if widest > LIMIT * largest else largest)
            scales.append(own)
            at += port.size
        whole = np.concatenate([np.zeros(0), *scales])
        return np.where(whole > 0, whole, 1.0)

    def csv(self) -> str:
        """Return the record as a table that a C library and a spreadsheet read."""
        rows = "\n".join(",".join(map(repr, row)) for row in self.table.tolist())
        return f"{self.csv_head()}\n{rows}\n"

    def csv_head(self) -> str:
        """Return the two lines above the numbers: what it is, and the names of the columns."""
        names = [f"{group}.{port.name}.{port.entry(k)}" for group, port in self.block.inputs
                 for k in range(port.size)]  # fmt: skip
        for kind, ports in (
            ("memory", self.block.memory),
            ("output", self.block.outputs),
            ("memory_next", self.block.memory),
            ("signal", self.block.signal_ports),
        ):
            names += [f"{kind}.{p.name}.{p.entry(k)}" for p in ports for k in range(p.size)]
        head = ",".join(name.replace(",", ";") for name in names)
        return f"# recorded steps of {self.block.name}, made by framefree\n{head}"


def main_c(steps: RecordedSteps, single: bool) -> str:
    """Return the program that replays a record."""
    block, name = steps.block, steps.block.name
    sizes = {group: sum(p.size for p in ports) for group, ports in block.groups.items()}
    counts = [sum(p.size for p in ports) for ports in (block.memory, block.outputs)]
    signals = sum(port.size for port in block.signal_ports)
    declarations = "".join(f"static {name}_{group} {group};\n" for group in block.groups)
    takes, at = "", 0
    for group, size in sizes.items():
        if size:
            takes += f"        take(&{group}, {size}, row + {at});\n"
        at += size
    passed = "".join(f", &{group}" for group in block.groups)
    gather = (
        "        memcpy(result, &out, OUTPUTS * sizeof(real));\n"
        "        memcpy(result + OUTPUTS, &memory, MEMORY * sizeof(real));\n"
    )
    tell = ""
    if signals:
        declarations += f"static {name}_signals signals;\n"
        tell = f"        {name}_tell(&memory{passed}, &signals);\n"
        gather += "        memcpy(result + OUTPUTS + MEMORY, &signals, SIGNALS * sizeof(real));\n"
    labels = [f"{p.name}[{k}]" for p in steps.result_ports for k in range(p.size)]
    scale = [f"    {value!r}," for value in (*steps.scales(single).tolist(), 1.0)]
    text = MAIN.format(
        name=name,
        line=max(map(len, steps.csv_head().splitlines())) + 26 * steps.table.shape[1] + 64,
        inputs=sum(sizes.values()),
        memory=counts[0],
        outputs=counts[1],
        signals=signals,
        scale="\n".join(scale),
        labels="\n".join(f'    "{one}",' for one in (*labels, "nothing")),
        declarations=declarations,
        takes=takes,
        tell=tell,
        passed=passed,
        gather=gather,
        # In single precision the inputs of the machine are judged, in double all that is given.
        judged=counts[1] if single else "RESULTS",
        limit=repr(SINGLE_LIMIT if single else LIMIT),
    )
    return text
