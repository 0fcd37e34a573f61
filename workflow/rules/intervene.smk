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
