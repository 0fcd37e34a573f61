rule name_swaps:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/name_swaps.txt",
    output:
        f"{RESULTS}/{{model}}/name_swaps.parquet",
    log:
        f"{LOGS}/{{model}}/name_swaps.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("name_swaps"),
    script:
        "../../scripts/name_swaps.py"


rule name_swaps_summary:
    input:
        name_swaps=f"{RESULTS}/{{model}}/name_swaps.parquet",
    output:
        f"{RESULTS}/{{model}}/name_swaps_summary.parquet",
    log:
        f"{LOGS}/{{model}}/name_swaps_summary.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job=job("name_swaps_summary"),
    script:
        "../../scripts/name_swaps_summary.py"


rule ablations:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/ablations.txt",
    output:
        f"{RESULTS}/{{model}}/ablations.parquet",
    log:
        f"{LOGS}/{{model}}/ablations.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("ablations"),
    script:
        "../../scripts/ablations.py"


rule filler_sweep:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/filler_sweep.txt",
    output:
        f"{RESULTS}/{{model}}/filler_sweep.parquet",
    log:
        f"{LOGS}/{{model}}/filler_sweep.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("filler_sweep"),
    script:
        "../../scripts/filler_sweep.py"


rule patching:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/patching.txt",
    output:
        f"{RESULTS}/{{model}}/patching.parquet",
    log:
        f"{LOGS}/{{model}}/patching.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("patching"),
    script:
        "../../scripts/patching.py"


rule sink:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/sink.txt",
    output:
        f"{RESULTS}/{{model}}/sink.parquet",
    log:
        f"{LOGS}/{{model}}/sink.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("sink"),
    script:
        "../../scripts/sink.py"
