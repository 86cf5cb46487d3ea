"""Messages about MJCF files: all at once, grouped, each at its file and line."""

import pytest

from framefree.machine.formats.markup import ReadError
from framefree.machine.read import read

pytest.importorskip("mujoco")
BODY = '<body name="b{0}"><joint name="j{0}"/><geom size="0.1"/></body>'


def problems_of(text, **options):
    with pytest.raises(ReadError) as caught:
        read(text, **options)
    return caught.value.problems


def test_problems_of_every_stage_come_in_one_round():
    text = f"""<mujoco>
<worldbody>{BODY.format(0)}
<flexcomp name="f" type="grid" count="2 2 1" spacing="1 1 1"/>
<geom sise="1" size="1"/>
<body><joint type="free" armature="1"/><geom size="1"/></body></worldbody>
<actuator>
<motor name="i" joint="j0" delay="0.01" nsample="5"/>
<damper name="d" joint="j0" kv="1" ctrlrange="0 1"/></actuator>
<tendon><fixed name="t" armature="1"><joint joint="j0" coef="1"/></fixed></tendon></mujoco>"""
    words = "\n".join(problems_of(text))
    for part in (
        "line 3: <flexcomp> is refused",
        "line 4: MJCF has no attribute `sise` of <geom>; did you mean `size`",
        "`armature` = 1 of a free joint",
        "<motor> `i`, line 7: an actuator with a delay",
        "<damper> `d`, line 8: an actuator with a gain that is not constant",
        "<fixed> `t`, line 9: a tendon with `armature`",
    ):
        assert part in words, part


def test_many_problems_of_one_kind_are_one_line():
    bodies = "\n".join(BODY.format(i) for i in range(90))
    drives = "\n".join(f'<damper joint="j{i}" kv="1" ctrlrange="0 1"/>' for i in range(90))
    text = f"<mujoco><worldbody>{bodies}</worldbody><actuator>{drives}</actuator></mujoco>"
    with pytest.raises(ReadError) as caught:
        read(text)
    head, problem = str(caught.value).splitlines()
    assert head == "90 problems:"
    assert "(and 89 more of this kind, at lines 91, 92, 93, ...)" in problem
    assert len(problem) < 600


def test_names_inside_frames_are_checked():
    inside = BODY.format(0).replace('name="b0"', 'name="b0" gravkomp="1"')
    frame = f"<frame posi='1 0 0'>\n{inside}</frame>"
    text = f"<mujoco><worldbody>\n{frame}\n<bodie/></worldbody></mujoco>"
    one, two, three = list(problems_of(text))
    assert "<frame>, line 2: MJCF has no attribute `posi` of <frame>; did you mean `pos`" in one
    assert "line 3: MJCF has no attribute `gravkomp` of <body>; did you mean `gravcomp`" in two
    assert "line 4: MJCF has no <bodie> there; did you mean `body`" in three


def test_the_option_that_counts_is_named():
    text = f"""<mujoco>
<option timestep="0.001"/>
<option density="1.2"/>
<worldbody>{BODY.format(0)}</worldbody></mujoco>"""
    assert any("line 3: a fluid" in note for note in read(text, without="fluid").ignored)


def test_meshes_beside_an_included_file_are_found(tmp_path):
    folder = tmp_path / "arm"
    (folder / "assets").mkdir(parents=True)
    corners = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    faces = ("1 3 2", "1 2 4", "1 4 3", "2 3 4")
    words = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {face}" for face in faces]
    (folder / "wedge.obj").write_text("\n".join(words))
    (folder / "assets" / "other.obj").write_text("\n".join(words))
    (folder / "arm.xml").write_text(
        """<mujoco><asset><mesh name="a" file="wedge.obj"/><mesh name="b" file="other.obj"/></asset>
        <worldbody><body><joint/><geom type="mesh" mesh="a"/><geom type="mesh" mesh="b"/></body>
        </worldbody></mujoco>"""
    )
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><compiler meshdir="assets"/><include file="arm/arm.xml"/></mujoco>')
    machine = read(main)
    assert sorted(shape.file.rpartition("/")[2] for shape in machine.geometry) == [
        "other.obj",
        "wedge.obj",
    ]
