"""Packages, from wheels that the tests make: nothing is fetched from anywhere."""

import asyncio
import base64
import hashlib
import io
import tarfile
import zipfile

import pytest

from sandlite import AsyncSandbox, PackageError, Sandbox, SandliteError, Skills, _pip


def wheel(directory, name, version="1.0", tag="py3-none-any", files=None, requires=(), module=None):
    """Writes a wheel and returns its path."""
    info = f"{name}-{version}.dist-info"
    needed = "".join(f"Requires-Dist: {one}\n" for one in requires)
    pure = "true" if tag.endswith("-none-any") else "false"
    whole = {
        f"{module or name}/__init__.py": f"value = {name!r}\n",
        **(files or {}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: {tag}\n",
    }
    path = directory / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        record = ""
        for inner, text in whole.items():
            archive.writestr(inner, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{inner},sha256={digest},{len(text.encode())}\n"
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


@pytest.fixture
def wheels(tmp_path):
    directory = tmp_path / "wheels"
    directory.mkdir()
    wheel(directory, "alpha", requires=["beta>=1"])
    wheel(directory, "beta")
    native = "cp314-cp314-manylinux_2_17_x86_64"
    either = "try:\n    from gamma._fast import value\nexcept ImportError:\n    value = 'slow'\n"
    wheel(directory, "gamma", tag=native, files={"gamma/__init__.py": either, "gamma/_fast.cpython-314-x86_64-linux-gnu.so": "ELF"})
    wheel(directory, "delta", tag=native, files={"delta/__init__.py": "import delta._fast\n", "delta/_fast.abi3.so": "ELF"})
    wheel(directory, "epsilon", requires=["delta"])
    return directory


def names(packages):
    return [package.name for package in packages]


def test_a_wheel_file_is_installed(wheels):
    with Sandbox() as box:
        done = box.pip_install(wheels / "beta-1.0-py3-none-any.whl")
        assert names(done.installed) == ["beta"] and names(box.packages()) == ["beta"]
        assert box.python("import beta; print(beta.value)").stdout == "beta\n"
        assert box.exists("/home/user/.local/lib/python3.14/site-packages/beta/__pycache__/__init__.cpython-314.pyc")


def test_names_are_found_in_a_directory_with_what_they_need(wheels):
    with Sandbox() as box:
        done = box.pip_install("alpha", find_links=wheels, offline=True)
        assert names(done.installed) == ["alpha", "beta"] and done.missing == []
        alone = Sandbox()
        assert names(alone.pip_install("alpha", find_links=[wheels], offline=True, no_deps=True).installed) == ["alpha"]


def test_requirements_are_read_from_a_file(wheels, tmp_path):
    (tmp_path / "more.txt").write_text("gamma\n")
    (tmp_path / "requirements.txt").write_text("# ours\nalpha==1.0  # pinned\n-r more.txt\n")
    with Sandbox() as box:
        box.pip_install(requirements=tmp_path / "requirements.txt", find_links=wheels, offline=True)
        assert names(box.packages()) == ["alpha", "beta", "gamma"]
        assert box.python("import gamma; print(gamma.value)").stdout == "slow\n"


def test_one_that_does_not_work_is_named_and_the_others_are_installed(wheels):
    with Sandbox() as box:
        with pytest.raises(PackageError) as caught:
            box.pip_install("beta", "delta", "epsilon", "absent", find_links=wheels, offline=True)
        reasons = {refused.name: refused.reason for refused in caught.value.refused}
        assert set(reasons) == {"delta", "epsilon", "absent"}
        assert "does not work without its native code: ModuleNotFoundError" in reasons["delta"]
        assert reasons["epsilon"].startswith("it requires `delta`, which does not work without its native code")
        assert names(caught.value.installed) == ["beta"] and names(box.packages()) == ["beta"]


def source_archive(path, name, mark):
    """Writes a source archive whose build needs nothing and leaves a mark."""
    code = f"open({str(mark)!r}, 'w')"
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    with tarfile.open(path, "w:gz") as archive:
        for inner, text in {"pyproject.toml": project, "backend.py": code, "setup.py": code}.items():
            member = tarfile.TarInfo(f"{name}-1.0/{inner}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.mark.parametrize("condition", ["", ' ; extra == "more"'])
def test_an_archive_that_a_wheel_requires_is_neither_fetched_nor_built(tmp_path, wheels, condition):
    archive, mark = tmp_path / "x-1.0.tar.gz", tmp_path / "mark"
    source_archive(archive, "x", mark)
    wheel(wheels, "evil", requires=[f"x @ file://{archive}{condition}"])
    wheel(wheels, "far", requires=[f"x @ http://127.0.0.1:9/x-1.0.tar.gz{condition}"])
    with Sandbox() as box:
        for name in ("evil[more]", "far[more]"):
            with pytest.raises(PackageError, match="names an address"):
                box.pip_install(name, find_links=wheels, offline=True)
        assert names(box.packages()) == []
    with pytest.raises(SandliteError, match="names an address"):
        files = {"SKILL.md": "---\nname: a\ndescription: Does nothing.\n---\n", "main.py": "", "requirements.txt": "evil[more]\n"}
        Skills(":memory:").push(files, find_links=wheels, offline=True)
    assert not mark.exists()


def test_no_setting_of_pip_makes_it_build(tmp_path, wheels, monkeypatch):
    mark = tmp_path / "mark"
    source_archive(wheels / "source-1.0.tar.gz", "source", mark)
    needed = tmp_path / "needed.txt"
    needed.write_text(f"beta @ file://{wheels}/source-1.0.tar.gz\n")
    settings = tmp_path / "pip.conf"
    for name in ("PIP_CONSTRAINT", "PIP_REQUIREMENT"):
        with monkeypatch.context() as patch, Sandbox() as box:
            patch.setenv(name, str(needed))
            patch.setenv("PIP_NO_BINARY", ":all:")
            assert names(box.pip_install("alpha", find_links=wheels, offline=True).installed) == ["alpha", "beta"]
    with Sandbox() as box:
        for text in (f"[global]\nconstraint = {needed}\n", f"[download]\nrequirement = {needed}\n"):
            settings.write_text(text)
            with monkeypatch.context() as patch, pytest.raises(PackageError):
                patch.setenv("PIP_CONFIG_FILE", str(settings))
                box.pip_install("alpha", find_links=wheels, offline=True)
        # Where pip takes no notice of addresses, it cannot start the build.
        needed.write_text(f"file://{wheels}/source-1.0.tar.gz\n")
        with monkeypatch.context() as patch, pytest.raises(PackageError):
            patch.setenv("PIP_CONFIG_FILE", str(settings))
            box.pip_install("alpha", find_links=wheels, offline=True)
        with pytest.raises(PackageError):
            box.pip_install("source", find_links=wheels, offline=True)
    assert not mark.exists()


def test_modules_of_the_current_directory_are_not_imported(tmp_path, wheels, monkeypatch):
    mark = tmp_path / "mark"
    for module in ("pip", "os", "runpy", "zipfile"):
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    with Sandbox() as box:
        assert names(box.pip_install("beta", find_links=wheels, offline=True).installed) == ["beta"]
    assert not mark.exists()


def test_an_invalid_name_is_rejected_before_pip_runs():
    with Sandbox() as box:
        for name in ("six @ https://example.com/x.whl", "--index-url=x", "a;b"):
            with pytest.raises(ValueError, match="invalid package name"):
                box.pip_install(name)
        with pytest.raises(ValueError, match="offline"):
            box.pip_install("six", offline=True)


def test_ctrl_c_while_pip_runs_is_a_keyboard_interrupt(monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_pip, "_run_pip", interrupted)
    files = {"SKILL.md": "---\nname: a\ndescription: Does nothing.\n---\n", "main.py": "import six", "requirements.txt": "six\n"}
    with Sandbox() as box:
        with pytest.raises(KeyboardInterrupt):
            box.pip_install("six")
        assert names(box.packages()) == []
        with pytest.raises(KeyboardInterrupt):
            Skills(":memory:").push(files)


def test_an_async_sandbox_installs_too(wheels):
    async def main():
        async with AsyncSandbox() as box:
            done = await box.pip_install("alpha", find_links=wheels, offline=True)
            assert names(done.installed) == ["alpha", "beta"] == names(await box.packages())

    asyncio.run(main())


#: Code with an optional C part, as in MarkupSafe and PyYAML.
OPTIONAL = "try:\n    from {module}._speedups import value\nexcept ImportError:\n    value = 'pure'\n"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index with packages of known names and shapes, in a directory of this machine."""
    packages = tmp_path / "packages"
    packages.mkdir()
    native = "cp314-cp314-manylinux_2_17_x86_64"

    def compiled(name, version, module, text):
        library = f"{module}/_speedups.cpython-314-x86_64-linux-gnu.so"
        wheel(packages, name, version, native, {f"{module}/__init__.py": text, library: "ELF"}, module=module)

    compiled("MarkupSafe", "3.0.2", "markupsafe", OPTIONAL.format(module="markupsafe"))
    compiled("PyYAML", "6.0.2", "yaml", OPTIONAL.format(module="yaml"))
    compiled("hardened", "1.0", "hardened", "from hardened._speedups import value\n")
    wheel(packages, "jinja2", "3.1.4", requires=["MarkupSafe>=2.0"])
    wheel(packages, "flask", "3.0.3", requires=["Jinja2>=3.1", "MarkupSafe>=2.1"])
    wheel(packages, "mpmath", "1.3.0")
    wheel(packages, "sympy", "1.13.3", requires=["mpmath<1.4,>=1.1.0"])
    wheel(packages, "fortress", "1.0", requires=["hardened"])
    simple = tmp_path / "simple"
    for path in packages.iterdir():
        place = simple / path.name.split("-")[0].lower()
        place.mkdir(parents=True, exist_ok=True)
        (place / "index.html").write_text(f'<a href="{path.as_uri()}">{path.name}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", simple.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


WANTED = ("jinja2", "pyyaml", "flask", "markupsafe", "sympy")
INSTALLED = ["flask", "jinja2", "markupsafe", "mpmath", "pyyaml", "sympy"]
IMPORTS = "import jinja2, yaml, flask, markupsafe, sympy; print(markupsafe.value, yaml.value)"


def check_refused(error):
    reasons = {refused.name: refused.reason for refused in error.refused}
    assert set(reasons) == {"absent-one", "fortress"}
    assert "pip cannot find it" in reasons["absent-one"]
    assert reasons["fortress"].startswith("it requires `hardened`, which does not work without its native code")
    assert sorted(name.lower() for name in names(error.installed)) == INSTALLED
    assert "cannot install `absent-one`" in str(error) and "cannot install `fortress`" in str(error)


def test_packages_with_optional_c_parts_are_installed_without_them(index):
    with Sandbox() as box:
        done = box.pip_install(*WANTED)
        assert sorted(name.lower() for name in names(done.installed)) == INSTALLED and done.missing == []
        assert box.python(IMPORTS).stdout == "pure pure\n"


def test_a_bad_name_among_several_is_named_and_the_others_are_installed(index):
    with Sandbox() as box:
        with pytest.raises(PackageError) as caught:
            box.pip_install(*WANTED[:2], "absent-one", "fortress", *WANTED[2:])
        check_refused(caught.value)
        assert box.python(IMPORTS).stdout == "pure pure\n"


def test_a_bad_name_among_several_is_named_in_an_async_sandbox_too(index):
    async def main():
        async with AsyncSandbox() as box:
            with pytest.raises(PackageError) as caught:
                await box.pip_install(*WANTED[:2], "absent-one", "fortress", *WANTED[2:])
            check_refused(caught.value)
            assert (await box.python(IMPORTS)).stdout == "pure pure\n"

    asyncio.run(main())
