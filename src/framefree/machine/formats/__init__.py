"""Model files: URDF and MJCF, read into machines and written from them."""
