rule cache:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/cache.txt",
    output:
        f"{RESULTS}/{{model}}/cache.parquet",
    log:
        f"{LOGS}/{{model}}/cache.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("cache"),
    script:
        "../../scripts/cache.py"


# Takes every core, so that no other job runs beside it and disturbs the times.
rule timing:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/timing.txt",
    output:
        f"{RESULTS}/{{model}}/timing.parquet",
    log:
        f"{LOGS}/{{model}}/timing.log",
    conda:
        "../../envs/torch.yaml"
    threads: every_core
    params:
        job=job("timing"),
    script:
        "../../scripts/timing.py"


rule timing_summary:
    input:
        timing=f"{RESULTS}/{{model}}/timing.parquet",
    output:
        f"{RESULTS}/{{model}}/timing_summary.parquet",
    log:
        f"{LOGS}/{{model}}/timing_summary.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job=job("timing_summary"),
    script:
        "../../scripts/timing_summary.py"


rule machine:
    input:
        timing=f"{RESULTS}/{{model}}/timing.parquet",
    output:
        f"{RESULTS}/{{model}}/machine.parquet",
    log:
        f"{LOGS}/{{model}}/machine.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("machine"),
    script:
        "../../scripts/machine.py"


rule cost:
    input:
        timing_summary=f"{RESULTS}/{{model}}/timing_summary.parquet",
    output:
        f"{RESULTS}/{{model}}/cost.parquet",
    log:
        f"{LOGS}/{{model}}/cost.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job=job("cost"),
    script:
        "../../scripts/cost.py"
