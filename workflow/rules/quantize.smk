rule quantization_quality:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/quantization_quality.txt",
        passages=passage_files(),
    output:
        f"{RESULTS}/{{model}}/quantization_quality.parquet",
    log:
        f"{LOGS}/{{model}}/quantization_quality.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("quantization_quality"),
    script:
        "../../scripts/quantization_quality.py"


# Takes every core, so that no other job runs beside it and disturbs the times.
rule quantization_timing:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/quantization_timing.txt",
    output:
        f"{RESULTS}/{{model}}/quantization_timing.parquet",
    log:
        f"{LOGS}/{{model}}/quantization_timing.log",
    conda:
        "../../envs/torch.yaml"
    threads: every_core
    params:
        job=job("quantization_timing"),
    script:
        "../../scripts/quantization_timing.py"


rule quantization_error:
    input:
        weights=f"{RESULTS}/{{model}}/weights.parquet",
        admitted=f"{RESULTS}/admitted/{{model}}/quantization_error.txt",
    output:
        f"{RESULTS}/{{model}}/quantization_error.parquet",
    log:
        f"{LOGS}/{{model}}/quantization_error.log",
    conda:
        "../../envs/torch.yaml"
    threads: 2
    params:
        job=job("quantization_error"),
    script:
        "../../scripts/quantization_error.py"


rule quantization:
    input:
        quantization_quality=f"{RESULTS}/{{model}}/quantization_quality.parquet",
        quantization_timing=f"{RESULTS}/{{model}}/quantization_timing.parquet",
    output:
        f"{RESULTS}/{{model}}/quantization.parquet",
    log:
        f"{LOGS}/{{model}}/quantization.log",
    conda:
        "../../envs/tables.yaml"
    params:
        job=job("quantization"),
    script:
        "../../scripts/quantization.py"
