"""An editor as somebody else might write it: the seeds' methods over a dict, and not one more."""

from collections.abc import Sequence

from lastword.editor.provider import LintError
from lastword.editor.text import Operation, insert, replace


class ForeignEditor:
    script_name = "foreign"

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.shown: list[str] = []

    def exists(self, path: str) -> bool:
        return path in self.files

    def get_all_folders(self) -> list[str]:
        return []

    def get_all_files(self) -> list[str]:
        return sorted(self.files)

    async def get_file_content(self, path: str) -> str | None:
        return self.files.get(path)

    async def update_file_content(self, path: str, content: str) -> bool:
        if path not in self.files:
            return False
        self.files[path] = content
        return True

    async def write_to_file(self, path: str, content: str) -> bool:
        self.files[path] = content
        return True

    async def insert_content(self, path: str, operations: Sequence[Operation]) -> bool:
        return await self.update_file_content(path, insert(self.files[path], operations))

    async def replace_in_file(self, path: str, operations: Sequence[Operation]) -> bool:
        return await self.update_file_content(path, replace(self.files[path], operations))

    def open_diff_editor(self, path: str, content: str) -> None:
        self.shown.append(path)

    def get_lint_errors(self) -> dict[str, list[LintError]]:
        return {"a.txt": [{"line": 1, "message": "odd"}]}
