"""What both versions of the standard share in C: an instance, its numbers and its steps."""

from framefree.export.block import StepBlock
from framefree.export.fmu.variables import CLOCK, COUNTS, FmuLayout

COMMON = """\
/* {identifier} as an FMU, made by framefree. The few declarations of the standard that are needed
 * are written out here.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "{name}.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

#define TOKEN "{token}"
#define STATES {states}

typedef void (*Logger)(void);

typedef struct {{
    double time;
    int shown; /* whether the outputs are those of the memory */
    {name}_memory memory;
{groups}    {name}_output out;
{rate}}} Numbers;

typedef struct {{
    Numbers now;
    Logger log;
    void *environment;
    char name[128];
}} Model;

/* Where the number with a value reference is, or NULL. */
static double *place(Model *model, uint32_t reference)
{{
    Numbers *now = &model->now;
    if (reference == 0) {{
        return &now->time;
    }}
{places}    return NULL;
}}

static void begin(Model *model)
{{
    memset(&model->now, 0, sizeof(model->now));
    {name}_start(&model->now.memory);
}}

static void show(Model *model)
{{
    Numbers *now = &model->now;
    if (!now->shown) {{
{show}        now->shown = 1;
    }}
}}

static int get_numbers(Model *model, const uint32_t *references, size_t count, double *values)
{{
    size_t k;
    show(model);
    for (k = 0; k < count; ++k) {{
        const double *from = place(model, references[k]);
        if (from == NULL) {{
            return 0;
        }}
        values[k] = *from;
    }}
    return 1;
}}

static int set_numbers(Model *model, const uint32_t *references, size_t count, const double *values)
{{
    size_t k;
    for (k = 0; k < count; ++k) {{
        double *to = place(model, references[k]);
        if (to == NULL || references[k] == 0) {{
            return 0;
        }}
        *to = values[k];
    }}
    model->now.shown = 0;
    return 1;
}}

static void set_time(Model *model, double time)
{{
    model->now.time = time;
    model->now.shown = 0;
}}

/* The time at which a simulation starts. */
static void start_at(Model *model, double time)
{{
    set_time(model, time);
{count}}}

/* Steps of {period} s from a time on; 0 where the time is not a whole number of them. */
static int move(Model *model, double time, double duration)
{{
    Numbers *now = &model->now;
    const double steps = floor(duration / {period} + 0.5);
    double k;
    if (!(steps >= 1.0) || fabs(steps * {period} - duration) > 1e-6 * {period}) {{
        return 0;
    }}
    for (k = 0.0; k < steps; k += 1.0) {{
{clock}        {name}_advance(&now->memory{passed}, &now->out);
    }}
    now->time = time + duration;
    now->shown = 1;
    return 1;
}}

static Model *make(const char *name, const char *token, Logger log, void *environment)
{{
    Model *model;
    if (token == NULL || strcmp(token, TOKEN) != 0) {{
        return NULL;
    }}
    model = calloc(1, sizeof(Model));
    if (model != NULL) {{
        if (name != NULL) {{
            strncpy(model->name, name, sizeof(model->name) - 1);
        }}
        model->log = log;
        model->environment = environment;
        begin(model);
    }}
    return model;
}}
"""
CONTINUOUS = """
#if STATES > 0
static void get_states(Model *model, double *values)
{{
    const double *from = (const double *)&model->now.memory;
    size_t k;
    for (k = 0; k < STATES; ++k) {{
        values[k] = from[{first} + k];
    }}
}}

static void set_states(Model *model, const double *values)
{{
    double *to = (double *)&model->now.memory;
    size_t k;
    for (k = 0; k < STATES; ++k) {{
        to[{first} + k] = values[k];
    }}
    model->now.shown = 0;
}}

static void get_rates(Model *model, double *values)
{{
    show(model);
    memcpy(values, &model->now.rate, STATES * sizeof(double));
}}
#endif
"""


def runtime(block: StepBlock, layout: FmuLayout, identifier: str, token: str) -> str:
    """Return the part of the source that both versions share."""
    name = block.name
    groups = "".join(f"    {name}_{group} {group};\n" for group in block.groups)
    passed = "".join(f", &now->{group}" for group in block.groups)
    places = "".join(
        f"    if (reference >= {one.first} && reference < {one.first + one.count}) {{\n"
        f"        return (double *)&now->{one.struct} + {one.offset} + (reference - {one.first});\n"
        "    }\n"
        for one in layout.ranges
        if one.count
    )
    show = ""
    if block.now is not None:
        show += f"        {name}_show(&now->memory{passed}, &now->out);\n"
    if block.rates is not None:
        show += f"        {name}_rates(now->time, &now->memory{passed}, &now->rate);\n"
    counted = [port.name for port in block.memory if port.name in COUNTS]
    count = "".join(
        f"    model->now.memory.{one} = floor(time / {block.period!r} + 0.5);\n" for one in counted
    )
    clocks = [g for g, ports in block.groups.items() if any(p.name == CLOCK for p in ports)]
    clock = "".join(f"        now->{g}.{CLOCK} = time + k * {block.period!r};\n" for g in clocks)
    states = len(layout.states)
    text = COMMON.format(
        identifier=identifier,
        name=name,
        token=token,
        states=states,
        groups=groups,
        rate=f"    {name}_rate rate;\n" if block.rates is not None else "",
        places=places,
        show=show,
        count=count,
        clock=clock,
        passed=passed,
        period=repr(float(block.period)),
    )
    if states:
        # Continuous states follow one another in the memory, after what counts steps.
        text += CONTINUOUS.format(first=len(counted))
    return text
