"""Data sets: a registry with pinned hashes, loaders, published splits, few-shot tasks."""

from predcp.data._bundled import BUNDLED
from predcp.data._directory import data_directory
from predcp.data._encoder import Encoder
from predcp.data._errors import DataError
from predcp.data._fetch import fetch
from predcp.data._file_options import MISSING, FileOptions
from predcp.data._files import FileTable, FrameTable, frame_table, load_file, load_frame
from predcp.data._frame import read_frame
from predcp.data._hashes import file_sha256
from predcp.data._images import PARTS, ImageClasses
from predcp.data._load import Split, is_file_name, load, load_split, split_rule, table_names
from predcp.data._load_images import load_images
from predcp.data._registry import Download, Source, registry, source
from predcp.data._splits import Rows, medical_split, random_split, standard_split
from predcp.data._standardise import Standardiser
from predcp.data._table import Table, Task
from predcp.data._verify import is_present, verify

__all__ = [
    "BUNDLED",
    "MISSING",
    "PARTS",
    "DataError",
    "Download",
    "Encoder",
    "FileOptions",
    "FileTable",
    "FrameTable",
    "ImageClasses",
    "Rows",
    "Source",
    "Split",
    "Standardiser",
    "Table",
    "Task",
    "data_directory",
    "fetch",
    "file_sha256",
    "frame_table",
    "is_file_name",
    "is_present",
    "load",
    "load_file",
    "load_frame",
    "load_images",
    "load_split",
    "medical_split",
    "random_split",
    "read_frame",
    "registry",
    "source",
    "split_rule",
    "standard_split",
    "table_names",
    "verify",
]
