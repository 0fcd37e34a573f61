rule chart_library:
    output:
        f"{RESULTS}/charts/library.js",
    log:
        f"{LOGS}/charts/library.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job={
            "stage": "chart_library",
            "settings": {},
            "code": code_hash(ROOT / "scripts" / "chart_library.py"),
        },
    script:
        "../../scripts/chart_library.py"


rule chart:
    input:
        unpack(chart_inputs),
        library=f"{RESULTS}/charts/library.js",
    output:
        html=f"{RESULTS}/charts/{{chart}}.html",
        svg=report(
            f"{RESULTS}/charts/{{chart}}.svg",
            caption="../report/chart.rst",
            category="Charts",
            labels={"chart": "{chart}"},
        ),
        png=f"{RESULTS}/charts/{{chart}}.png",
        json=f"{RESULTS}/charts/{{chart}}.json",
    log:
        f"{LOGS}/charts/{{chart}}.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job=chart_job,
    script:
        "../../scripts/chart.py"


rule report:
    input:
        **of_all_models(TABLES),
        passed=[f"{RESULTS}/{model}/parity.passed" for model in MODELS],
        charts=[
            f"{RESULTS}/charts/{chart}.{kind}"
            for chart in CHART_TABLES
            for kind in CHART_KINDS
        ],
    output:
        report(
            f"{RESULTS}/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"page": "report"},
        ),
    log:
        f"{LOGS}/report.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job=report_job,
    script:
        "../../scripts/report.py"
