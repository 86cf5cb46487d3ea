"""A C project: sources, test-bench, recorded steps, and files for Make and CMake."""

from framefree.export.bench_c import RecordedSteps, main_c
from framefree.export.struct_c import BlockInC

SHARED = ("main.c", "recorded.csv", "Makefile", "CMakeLists.txt", "README.md")
"""Files that every project has."""
MAKEFILE = """\
# {name}, made by framefree. `make check` builds the test-bench and replays the recorded run.
CC ?= cc
CFLAGS ?= -O2
REQUIRED = -std=c99 -Wall -Wextra -Wpedantic

SOURCES = {sources}

check: bench
\t./bench

bench: main.c $(SOURCES) $(SOURCES:.c=.h)
\t$(CC) $(REQUIRED) $(CFLAGS) main.c $(SOURCES) -lm -o bench

clean:
\trm -f bench

.PHONY: check clean
"""
CMAKE = """\
# {name}, made by framefree: a library, and its test-bench for ctest.
cmake_minimum_required(VERSION 3.10)
project({name} C)

set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

add_library({name}_code STATIC {sources})
set_target_properties({name}_code PROPERTIES OUTPUT_NAME {name})
target_include_directories({name}_code PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(UNIX)
  target_link_libraries({name}_code PUBLIC m)
endif()

add_executable(bench main.c)
target_link_libraries(bench PRIVATE {name}_code)

enable_testing()
add_test(NAME replay COMMAND bench ${{CMAKE_CURRENT_SOURCE_DIR}}/recorded.csv)
"""
README = """\
# {name}

This project was made by framefree: {about}. One step is {period:g} s; numbers are {kind}.

    #include "{name}.h"

    {name}_init();
    for (;;) {{                     /* every {period:g} s */
        {name}_step({call}&out);
    }}

Structs and units are in `{name}.h`. `{name}_start` and `{name}_advance` are the same with a memory
of your own, so that several can run side by side. Workspaces take {stack} bytes of stack.

`make check` (or CMake and ctest) replays {rows} recorded steps of the run and reports the largest
difference to the desk. Compile without -ffast-math. Without the instruction for fused products,
-DUNFUSED saves time and changes the last places.
{notes}"""


def project_files(
    parts: BlockInC, steps: RecordedSteps, notes: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return all files of a project by their names."""
    block = parts.block
    texts = parts.files()
    sources = " ".join(sorted(name for name in texts if name.endswith(".c")))
    texts["main.c"] = main_c(steps, parts.single)
    texts["recorded.csv"] = steps.csv()
    texts["Makefile"] = MAKEFILE.format(name=block.name, sources=sources)
    texts["CMakeLists.txt"] = CMAKE.format(name=block.name, sources=sources)
    texts["README.md"] = README.format(
        name=block.name,
        about=block.about,
        period=block.period,
        kind="floats" if parts.single else "doubles",
        call="".join(f"&{group}, " for group in block.groups),
        stack=parts.stack,
        rows=steps.rows,
        notes="".join(f"\n{note}\n" for note in notes),
    )
    return texts
