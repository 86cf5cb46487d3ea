"""Kinds of parts that most machines do not have: they are loaded when they are first asked for."""

PLACES = {
    "Contact": "framefree.machine.contact:Contact",
    "ContactShape": "framefree.machine.contact_shape:ContactShape",
    "FloatingHull": "framefree.machine.sea:FloatingHull",
    "Gusts": "framefree.machine.wind:Gusts",
    "Interaction": "framefree.machine.interaction:Interaction",
    "JointStop": "framefree.machine.joint_stop:JointStop",
    "PointSpring": "framefree.machine.point_spring:PointSpring",
    "Pulley": "framefree.machine.spatial_tendon:Pulley",
    "SpatialTendon": "framefree.machine.spatial_tendon:SpatialTendon",
    "Stops": "framefree.machine.joint_stop:Stops",
    "Waves": "framefree.machine.sea:Waves",
    "WindDrag": "framefree.machine.wind:WindDrag",
    "Wrap": "framefree.machine.spatial_tendon:Wrap",
}
"""Where each kind is, by name."""
