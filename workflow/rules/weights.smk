rule weights:
    input:
        lambda wildcards: source_files(wildcards.model),
    output:
        f"{RESULTS}/{{model}}/weights.parquet",
    log:
        f"{LOGS}/{{model}}/weights.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("weights"),
    script:
        "../../scripts/weights.py"


rule cells:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/cells.parquet",
    log:
        f"{LOGS}/{{model}}/cells.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("cells"),
    script:
        "../../scripts/cells.py"


rule census:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/census.parquet",
    log:
        f"{LOGS}/{{model}}/census.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("census"),
    script:
        "../../scripts/census.py"


rule tokens:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
    output:
        f"{RESULTS}/{{model}}/tokens.parquet",
    log:
        f"{LOGS}/{{model}}/tokens.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=job("tokens"),
    script:
        "../../scripts/tokens.py"
