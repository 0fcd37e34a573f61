# Without a ledger there is nothing to compare, and the table is empty whatever the run measured.
rule reproduction:
    input:
        **(of_all_models(OF_A_MODEL) if CONFIG.ledgers else {}),
        ledgers=CONFIG.ledgers,
    output:
        f"{RESULTS}/reproduction.parquet",
    log:
        f"{LOGS}/reproduction.log",
    conda:
        "../../envs/torch.yaml"
    params:
        job=spanning_job("reproduction"),
    script:
        "../../scripts/reproduction.py"
