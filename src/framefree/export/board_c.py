"""A block on a Cortex-M board: start-up, memory map, and a program that replays recorded steps.

Results leave by semihosting as the bits of numbers in hexadecimal, so that nothing is lost in
printing. Instructions are counted by the system timer, which QEMU moves on by one nanosecond an
instruction; the stack is painted before, and looked at after.
"""

import numpy as np

from framefree.export.bench_c import RecordedSteps
from framefree.export.block import StepBlock
from framefree.kernel.c_source import literal
from framefree.kernel.single_c import in_single

LINKER = """\
/* Made by framefree: the memory of ARM's MPS2 boards as QEMU has them. */
ENTRY(reset)
MEMORY
{
    FLASH (rx) : ORIGIN = 0x00000000, LENGTH = 4M
    RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 4M
}
stack_top = ORIGIN(RAM) + LENGTH(RAM);
SECTIONS
{
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) . = ALIGN(8); } > FLASH
    .ARM.exidx : { *(.ARM.exidx*) } > FLASH
    .data : { data_begin = .; *(.data*) . = ALIGN(8); data_end = .; } > RAM AT > FLASH
    data_from = LOADADDR(.data);
    .bss (NOLOAD) : { bss_begin = .; *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; } > RAM
    end = .;
}
"""
STARTUP = """\
/* Made by framefree: what happens before main on a Cortex-M with a floating-point unit. */
#include <stdint.h>

extern uint32_t stack_top[], data_begin[], data_end[], data_from[], bss_begin[], bss_end[];
int main(void);
void reset(void);
void stop(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, (void *)reset, (void *)stop, (void *)stop, (void *)stop, (void *)stop, (void *)stop,
};

void stop(void)
{
    for (;;) {
    }
}

__attribute__((naked)) void reset(void)
{
    /* The floating-point unit must be on before any code that may use it. */
    __asm volatile("ldr r0, =0xE000ED88\\n"
                   "ldr r1, [r0]\\n"
                   "orr r1, r1, #0xF00000\\n"
                   "str r1, [r0]\\n"
                   "dsb\\n"
                   "isb\\n"
                   "b begin\\n");
}

__attribute__((used)) void begin(void)
{
    uint32_t *to, *from = data_from;
    for (to = data_begin; to < data_end; ++to, ++from) {
        *to = *from;
    }
    for (to = bss_begin; to < bss_end; ++to) {
        *to = 0;
    }
    main();
    stop();
}
"""
PLAIN = """\
/* Made by framefree: the block alone, to see what it takes. */
#include "{name}.h"

{statics}static {name}_output out;
volatile {name}_real sink;

int main(void)
{{
    {name}_init();
    for (;;) {{
        {name}_step({passed}&out);
        sink = *({name}_real *)&out;
    }}
}}
"""
REPLAY = """\
/* Made by framefree: replays recorded steps on a board and tells the results by semihosting. */
#include <stdint.h>
#include <string.h>

#include "{name}.h"

enum {{ STEPS = {steps}, INPUTS = {inputs}, MEMORY = {memory}, OUTPUTS = {outputs} }};
enum {{ PAINTED = 16384 }};

typedef {name}_real real;

static const real recorded[STEPS][INPUTS + MEMORY + 1] = {{
{rows}
}};
{statics}static {name}_memory memory;
static {name}_output out;

#define SYSTICK ((volatile uint32_t *)0xE000E010)

static int semihosting(int operation, const void *argument)
{{
    register int r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}}

static void tell(const char *label, const void *value, unsigned bytes)
{{
    static char text[64];
    const unsigned char *from = value;
    unsigned k, at = 0;
    while (*label) {{
        text[at++] = *label++;
    }}
    for (k = bytes; k-- > 0;) {{
        text[at++] = "0123456789abcdef"[from[k] >> 4];
        text[at++] = "0123456789abcdef"[from[k] & 15];
    }}
    text[at++] = '\\n';
    text[at] = 0;
    semihosting(0x04, text);
}}

static void set(int step)
{{
    const real *row = recorded[step];
{takes}    memcpy(&memory, row + INPUTS, MEMORY * sizeof(real));
}}

static uint32_t replay(int with_step)
{{
    uint32_t before, passed = 0;
    int step;
    for (step = 0; step < STEPS; ++step) {{
        set(step);
        before = SYSTICK[2];
        if (with_step) {{
            {name}_advance(&memory{addresses}, &out);
        }}
        passed += (before - SYSTICK[2]) & 0xFFFFFF;
    }}
    return passed;
}}

__attribute__((noinline)) static uint32_t stack_of_a_step(void)
{{
    volatile uint32_t *bottom;
    uint32_t k, top;
    __asm volatile("mov %0, sp" : "=r"(top));
    bottom = (volatile uint32_t *)(top - PAINTED - 64);
    for (k = 0; k < PAINTED / 4; ++k) {{
        bottom[k] = 0xA5A5A5A5u;
    }}
    set(0);
    {name}_advance(&memory{addresses}, &out);
    for (k = 0; k < PAINTED / 4 && bottom[k] == 0xA5A5A5A5u; ++k) {{
    }}
    return PAINTED + 64 - 4 * k;
}}

int main(void)
{{
    static const uint32_t quit[2] = {{0x20026, 0}};
    uint32_t number;
    int step, k;
    SYSTICK[0] = 0;
    SYSTICK[1] = 0xFFFFFF;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
    number = replay(1);
    number -= replay(0);
    tell("ticks ", &number, 4);
    number = stack_of_a_step();
    tell("stack ", &number, 4);
    for (step = 0; step < STEPS; ++step) {{
        set(step);
        {name}_advance(&memory{addresses}, &out);
        for (k = 0; k < OUTPUTS; ++k) {{
            tell("out ", (const real *)&out + k, sizeof(real));
        }}
    }}
    semihosting(0x18, (const void *)0x20026);
    (void)quit;
    return 0;
}}
"""


def board_files(steps: RecordedSteps, rows: int, single: bool) -> dict[str, str]:
    """Return start-up, linker script and the two programs by the names of their files."""
    block, name = steps.block, steps.block.name
    chosen = np.unique(np.linspace(0, steps.rows - 1, min(rows, steps.rows)).astype(int))
    table = np.hstack([steps.inputs, steps.memory])[chosen]
    lines = [f"    {{{', '.join(map(literal, row))}, 0.0}}," for row in table.tolist()]
    takes, at = "", 0
    for group, ports in block.groups.items():
        size = sum(port.size for port in ports)
        if size:
            takes += f"    memcpy(&{group}, row + {at}, {size} * sizeof(real));\n"
        at += size
    statics = "".join(f"static {name}_{group} {group};\n" for group in block.groups)
    replay = REPLAY.format(
        name=name,
        steps=len(chosen),
        inputs=steps.inputs.shape[1],
        memory=steps.memory.shape[1],
        outputs=steps.outputs.shape[1],
        rows="\n".join(lines),
        statics=statics,
        takes=takes,
        addresses="".join(f", &{group}" for group in block.groups),
    )
    plain = PLAIN.format(name=name, statics=statics, passed=_passed(block))
    return {
        "board.ld": LINKER,
        "startup.c": STARTUP,
        "plain.c": plain,
        "replay.c": in_single(replay) if single else replay,
    }


def replayed_steps(steps: RecordedSteps, rows: int) -> np.ndarray:
    """Return the numbers of the recorded steps that `board_files` replays."""
    return np.unique(np.linspace(0, steps.rows - 1, min(rows, steps.rows)).astype(int))


def _passed(block: StepBlock) -> str:
    return "".join(f"&{group}, " for group in block.groups)
