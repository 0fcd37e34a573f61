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


rule attribution:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/attribution.txt",
    output:
        f"{RESULTS}/{{model}}/attribution.parquet",
    log:
        f"{LOGS}/{{model}}/attribution.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("attribution"),
    script:
        "../../scripts/attribution.py"


rule mixing:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/mixing.txt",
    output:
        f"{RESULTS}/{{model}}/mixing.parquet",
    log:
        f"{LOGS}/{{model}}/mixing.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("mixing"),
    script:
        "../../scripts/mixing.py"


rule attention:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/attention.txt",
    output:
        f"{RESULTS}/{{model}}/attention.parquet",
    log:
        f"{LOGS}/{{model}}/attention.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("attention"),
    script:
        "../../scripts/attention.py"


rule long_range:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/long_range.txt",
    output:
        f"{RESULTS}/{{model}}/long_range.parquet",
    log:
        f"{LOGS}/{{model}}/long_range.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("long_range"),
    script:
        "../../scripts/long_range.py"
