rule merges:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/merges.parquet",
    log:
        f"{LOGS}/{{model}}/merges.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("merges"),
    script:
        "../../scripts/merges.py"


rule geometry:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/geometry.parquet",
    log:
        f"{LOGS}/{{model}}/geometry.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("geometry"),
    script:
        "../../scripts/geometry.py"


rule positions:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/positions.parquet",
    log:
        f"{LOGS}/{{model}}/positions.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("positions"),
    script:
        "../../scripts/positions.py"


rule arithmetic:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/arithmetic.parquet",
    log:
        f"{LOGS}/{{model}}/arithmetic.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("arithmetic"),
    script:
        "../../scripts/arithmetic.py"


rule block:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/block.txt",
    output:
        f"{RESULTS}/{{model}}/block.parquet",
    log:
        f"{LOGS}/{{model}}/block.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("block"),
    script:
        "../../scripts/block.py"


rule mlp:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/mlp.txt",
    output:
        f"{RESULTS}/{{model}}/mlp.parquet",
    log:
        f"{LOGS}/{{model}}/mlp.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("mlp"),
    script:
        "../../scripts/mlp.py"
