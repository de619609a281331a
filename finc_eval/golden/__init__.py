"""Golden pictures: a few pairs a night, judged by themselves from the first night on, and then by the nights before."""
