rule next_token:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/next_token.txt",
    output:
        f"{RESULTS}/{{model}}/next_token.parquet",
    log:
        f"{LOGS}/{{model}}/next_token.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("next_token"),
    script:
        "../../scripts/next_token.py"


rule distribution:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/distribution.txt",
    output:
        f"{RESULTS}/{{model}}/distribution.parquet",
    log:
        f"{LOGS}/{{model}}/distribution.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("distribution"),
    script:
        "../../scripts/distribution.py"


rule lens:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/lens.txt",
    output:
        f"{RESULTS}/{{model}}/lens.parquet",
    log:
        f"{LOGS}/{{model}}/lens.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("lens"),
    script:
        "../../scripts/lens.py"


rule residual:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/residual.txt",
    output:
        f"{RESULTS}/{{model}}/residual.parquet",
    log:
        f"{LOGS}/{{model}}/residual.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("residual"),
    script:
        "../../scripts/residual.py"
