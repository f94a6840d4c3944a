//! The scientific Python: another interpreter under the same contract, for those who ask for it and have it installed.
//!
//! Tests that need it installed run with `SANDLITE_PYTHON_SCI=1` (`cargo xtask guests --python-sci` installs it).

use runtime::{Command, Error, Host, LimitName, Overrides, Preset, Python, Sandbox, Tool};

use super::skipped::skip;
use super::{check_error, host, texts};

const UNWANTED: &str = "set SANDLITE_PYTHON_SCI=1 after `cargo xtask guests --python-sci`";

/// A sandbox with the scientific Python, where the tests of it are wanted.
fn scientific(preset: Preset) -> Option<Sandbox> {
    if std::env::var_os("SANDLITE_PYTHON_SCI").is_none() {
        skip(UNWANTED);
        return None;
    }
    Some(Sandbox::builder().host(host()).preset(preset).python(Python::Scientific).open().unwrap())
}

/// Runs code and compares what it prints; it must succeed and complain of nothing.
#[track_caller]
fn check(code: &str, stdout: &str) {
    let Some(sandbox) = scientific(Preset::Normal) else { return };
    let output = sandbox.python(code).unwrap();
    assert_eq!((texts(&output), output.status.code()), ((stdout.to_owned(), String::new()), 0), "{code}");
}

#[test]
fn the_core_python_mentions_the_scientific_one() {
    for name in ["numpy", "pandas", "scipy", "sklearn", "matplotlib"] {
        let reason = "the scientific Python has it: `sandlite guests add python-sci` installs that one, `--python sci` runs it";
        check_error(&format!("import {name}"), &format!("ModuleNotFoundError: No module named '{name}' ({reason})"));
    }
}

#[test]
fn without_an_installation_it_is_refused_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::builder().cache(directory.path().join("cache")).build().unwrap();
    let error = Sandbox::builder().host(&host).python(Python::Scientific).open().err().unwrap();
    assert!(matches!(error, Error::NotInstalled { guest: "python-sci" }));
    assert_eq!(error.hint().unwrap(), "install it with `sandlite guests add python-sci`");
    assert!(host.guests().iter().any(|guest| guest.name == "python-sci" && !guest.installed));
}

#[test]
fn arrays_are_computed() {
    check(
        "import numpy as np\n\
         a = np.arange(12, dtype=float).reshape(3, 4)\n\
         print(a.T @ a)\n\
         print(np.linalg.solve(np.array([[2., 1.], [1., 3.]]), np.array([3., 5.])))\n\
         print(np.abs(np.fft.fft([1, 0, 0, 0])), np.linalg.eigvalsh([[2, 0], [0, 3]]))",
        "[[ 80.  92. 104. 116.]\n [ 92. 107. 122. 137.]\n [104. 122. 140. 158.]\n [116. 137. 158. 179.]]\n\
         [0.8 1.4]\n[1. 1. 1. 1.] [2. 3.]\n",
    );
}

#[test]
fn a_table_is_read_grouped_and_written() {
    let Some(sandbox) = scientific(Preset::Normal) else { return };
    sandbox
        .fs()
        .write("/home/user/sales.csv", "city,amount,day\nRome,10,2026-01-01\nOslo,5,2026-01-02\nRome,7,2026-02-01\n")
        .unwrap();
    let script = "import pandas as pd\n\
        table = pd.read_csv('sales.csv', parse_dates=['day'])\n\
        totals = table.groupby('city')['amount'].agg(['sum', 'mean']).sort_values('sum', ascending=False)\n\
        totals.to_csv('totals.csv')\n\
        table.set_index('day').resample('MS')['amount'].sum().to_json('months.json', date_format='iso')\n\
        table.to_excel('sales.xlsx', index=False)\n\
        print(pd.read_excel('sales.xlsx')['amount'].sum())";
    sandbox.fs().write("/home/user/report.py", script).unwrap();
    let output = sandbox.bash("python3 report.py && cat totals.csv && jq -c 'to_entries | map(.value)' months.json").unwrap();
    let expected = "22\ncity,sum,mean\nRome,17,8.5\nOslo,5,5.0\n[15,7]\n";
    assert_eq!(texts(&output), (expected.to_owned(), String::new()));
}

#[test]
fn statistics_optimisation_and_integration_work() {
    check(
        "from scipy import stats, optimize, integrate, interpolate, sparse\n\
         import numpy as np\n\
         print(round(stats.norm.cdf(1.96), 6), round(stats.ttest_ind([1, 2, 3], [2, 3, 4]).pvalue, 6))\n\
         found = optimize.minimize(lambda x: (x[0] - 1) ** 2 + (x[1] + 2) ** 2, [0, 0])\n\
         print(found.success, np.round(found.x, 3))\n\
         print(round(integrate.quad(np.sin, 0, np.pi)[0], 9), round(optimize.brentq(lambda x: x * x - 2, 0, 2), 9))\n\
         print(float(interpolate.CubicSpline([0, 1, 2], [0, 1, 4])(1.5)), sparse.eye(3).sum())",
        "0.975002 0.287864\nTrue [ 1. -2.]\n2.0 1.414213562\n2.25 3.0\n",
    );
}

#[test]
fn models_are_fitted() {
    check(
        "from sklearn.datasets import load_iris\n\
         from sklearn.ensemble import RandomForestClassifier\n\
         from sklearn.linear_model import LinearRegression, LogisticRegression\n\
         from sklearn.model_selection import train_test_split, cross_val_score\n\
         from sklearn.pipeline import make_pipeline\n\
         from sklearn.preprocessing import StandardScaler\n\
         from sklearn.cluster import KMeans\n\
         import numpy as np\n\
         X, y = load_iris(return_X_y=True)\n\
         X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)\n\
         forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X_train, y_train)\n\
         print(forest.score(X_test, y_test) > 0.9)\n\
         line = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)\n\
         print(line.score(X_test, y_test) > 0.9, cross_val_score(line, X, y, cv=3).mean() > 0.9)\n\
         x = np.arange(10.0).reshape(-1, 1)\n\
         print(LinearRegression().fit(x, 3 * x[:, 0] + 1).coef_.round(6))\n\
         print(sorted(np.bincount(KMeans(2, n_init=1, random_state=0).fit_predict([[0.0], [0.1], [9.0]])).tolist()))",
        "True\nTrue True\n[3.]\n[1, 2]\n",
    );
}

#[test]
fn a_chart_is_saved_as_a_picture() {
    let Some(sandbox) = scientific(Preset::Normal) else { return };
    let code = "import matplotlib.pyplot as plt, numpy as np\n\
        print(plt.get_backend().lower())\n\
        figure, axes = plt.subplots(figsize=(4, 3))\n\
        axes.plot(np.linspace(0, 6), np.sin(np.linspace(0, 6)), label='sin')\n\
        axes.set_title('A wave: $\\\\int x$'); axes.legend()\n\
        figure.savefig('wave.png', dpi=100); figure.savefig('wave.svg'); figure.savefig('wave.pdf')\n\
        from PIL import Image\n\
        print(Image.open('wave.png').size, Image.open('wave.png').convert('L').getextrema())";
    let output = sandbox.python(code).unwrap();
    assert_eq!(texts(&output), ("agg\n(400, 300) (0, 255)\n".to_owned(), String::new()));
    let picture = sandbox.fs().read("/home/user/wave.png").unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n") && picture.len() > 3_000, "{}", picture.len());
    assert!(sandbox.fs().read("/home/user/wave.svg").unwrap().starts_with(b"<?xml"));
    assert!(sandbox.fs().read("/home/user/wave.pdf").unwrap().starts_with(b"%PDF"));
}

#[test]
fn it_is_at_home_as_the_core_python_is() {
    check(
        "import os, subprocess, sqlite3, sys, pwd\n\
         print(sys.version_info[:2], sys.executable, os.getcwd(), os.getuid(), pwd.getpwuid(1000).pw_name)\n\
         print(subprocess.run('echo out | tr a-z A-Z; exit 3', shell=True, capture_output=True, text=True))\n\
         open('note', 'w').write('x'); os.chmod('note', 0o600); print(oct(os.stat('note').st_mode))\n\
         base = sqlite3.connect('a.db'); base.execute('create table t (x)'); base.execute('insert into t values (1)'); base.commit()\n\
         print(sqlite3.connect('a.db').execute('select * from t').fetchall())\n\
         print(subprocess.check_output([sys.executable, '-c', 'import numpy; print(numpy.ones(2).sum())'], text=True))",
        "(3, 15) /usr/bin/python3 /home/user 1000 user\n\
         CompletedProcess(args='echo out | tr a-z A-Z; exit 3', returncode=3, stdout='OUT\\n', stderr='')\n\
         0o100600\n[(1,)]\n2.0\n\n",
    );
}

#[test]
fn a_traceback_has_only_frames_of_the_program() {
    let Some(sandbox) = scientific(Preset::Normal) else { return };
    let output = sandbox.python("import numpy\ndef f():\n    1 / 0\nf()").unwrap();
    let (_, stderr) = texts(&output);
    assert!(stderr.starts_with("Traceback (most recent call last):\n  File \"<string>\", line 4, in <module>\n"), "{stderr}");
    assert!(stderr.ends_with("ZeroDivisionError: division by zero\n") && output.status.code() == 1, "{stderr}");
}

#[test]
fn host_tools_can_be_called() {
    if std::env::var_os("SANDLITE_PYTHON_SCI").is_none() {
        skip(UNWANTED);
        return;
    }
    let schema = serde_json::json!({ "type": "object", "properties": { "values": { "type": "array" } } });
    let total = Tool::new("total", "Adds.", schema, |arguments| {
        let sum: f64 = arguments["values"].as_array().unwrap().iter().filter_map(serde_json::Value::as_f64).sum();
        Ok(serde_json::json!(sum))
    });
    let sandbox = Sandbox::builder().host(host()).python(Python::Scientific).tool(total).open().unwrap();
    let output =
        sandbox.python("from sandlite import tools\nimport numpy\nprint(tools.total(numpy.arange(4.0).tolist()))").unwrap();
    assert_eq!(texts(&output), ("6.0\n".to_owned(), String::new()));
}

#[test]
fn a_session_keeps_its_arrays() {
    let Some(sandbox) = scientific(Preset::Normal) else { return };
    let mut session = sandbox.python_session().unwrap();
    session.python("import numpy as np\na = np.arange(5)").unwrap();
    let output = session.run(Command::python("a.sum()").echo()).unwrap();
    assert_eq!(texts(&output), ("np.int32(10)\n".to_owned(), String::new()));
    let output = session.python("a += 1\nprint(a)").unwrap();
    assert_eq!(texts(&output), ("[1 2 3 4 5]\n".to_owned(), String::new()));
}

#[test]
fn random_numbers_are_fresh_in_each_run_and_fixed_by_a_seed() {
    let Some(sandbox) = scientific(Preset::Normal) else { return };
    let code = "import random, numpy\nprint(random.random(), numpy.random.rand(), numpy.random.default_rng().random())";
    let run = |seed: Option<u64>| {
        let command = Command::python(code);
        texts(&sandbox.run(seed.map_or(command, |seed| Command::python(code).deterministic(seed))).unwrap())
    };
    let (first, second) = (run(None), run(None));
    for (a, b) in first.0.split_whitespace().zip(second.0.split_whitespace()) {
        assert_ne!(a, b);
    }
    assert_eq!(run(Some(7)), run(Some(7)));
    assert_ne!(run(Some(7)), run(Some(8)));
}

#[test]
fn limits_hold() {
    let Some(sandbox) = scientific(Preset::Strict) else { return };
    let limited = |code: &str, overrides: Overrides| sandbox.run(Command::python(code).limits(overrides)).unwrap();
    let wall = Overrides { wall: Some("500 ms".parse().unwrap()), ..Overrides::default() };
    for code in [
        "while True: pass",
        "import numpy as np\na = np.ones((2000, 2000))\nwhile True: a = a @ a * 1e-9",
        "import time; time.sleep(60)",
    ] {
        let output = limited(code, wall.clone());
        assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall), "{code}: {output:?}");
    }
    let compute = Overrides { compute: Some(50_000_000), ..Overrides::default() };
    let output = limited("while True: pass", compute);
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Compute));
    let output =
        limited("import numpy\ntry:\n    numpy.ones(10 ** 8)\nexcept MemoryError:\n    print('refused')", Overrides::default());
    assert_eq!(texts(&output), ("refused\n".to_owned(), String::new()));
    let deep = "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('deep')\n\
        import json\ntry: json.loads('[' * 10 ** 5)\nexcept RecursionError: print('deeper')";
    assert_eq!(texts(&limited(deep, Overrides::default())), ("deep\ndeeper\n".to_owned(), String::new()));
}

#[test]
fn runs_share_no_state() {
    let Some(sandbox) = scientific(Preset::Normal) else { return };
    sandbox.python("import numpy, pandas\nnumpy.left = 1\npandas.options.display.width = 7").unwrap();
    let output = sandbox.python("import numpy, pandas\nprint(hasattr(numpy, 'left'), pandas.options.display.width)").unwrap();
    assert_eq!(texts(&output), ("False 80\n".to_owned(), String::new()));
}
