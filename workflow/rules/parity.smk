rule parity:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/parity.parquet",
    log:
        f"{LOGS}/{{model}}/parity.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("parity"),
    script:
        "../../scripts/parity.py"


rule parity_layers:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/parity_layers.parquet",
    log:
        f"{LOGS}/{{model}}/parity_layers.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("parity_layers"),
    script:
        "../../scripts/parity_layers.py"


rule parity_gate:
    input:
        parity=f"{RESULTS}/{{model}}/parity.parquet",
        parity_layers=f"{RESULTS}/{{model}}/parity_layers.parquet",
    output:
        f"{RESULTS}/{{model}}/parity.passed",
    log:
        f"{LOGS}/{{model}}/parity_gate.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job=job("parity_gate"),
    script:
        "../../scripts/parity_gate.py"


localrules:
    admit,


# Lets a stage of a model through the gate. `common.smk` says why only some stages have this job.
rule admit:
    input:
        before_admission,
    output:
        f"{RESULTS}/admitted/{{model}}/{{stage}}.txt",
    log:
        f"{LOGS}/admitted/{{model}}/{{stage}}.log",
    wildcard_constraints:
        stage="|".join(GATED),
    conda:
        "../../envs/tables.yaml"
    params:
        admission=lambda wildcards: admission(wildcards.model, wildcards.stage),
    shell:
        "echo {params.admission} > {output} 2> {log}"
