"""What README.md shows of each record: its columns, and a regular expression that its rows match; default: all of it.

Rows are matched as their cells joined by " | ". A record without a place in README.md is not shown.
"""

SHOWN = {
    "audit_altered": (("data", "copies", "share", "any of the three"), r"exact \| 0.5 %|JPEG 30 \| 1 %"),
    "audit_null": (("what", "seen", "expected"), "^any "),
    "audit_planted": (
        ("generator", "calibrated, %", "p", "nearer to"),
        "^MNIST .* (fresh|smooth|GMM-100|[15] % copies) ",
    ),
    "audit_power": (("kind", "copies", "found", "printed, mean"), r"exact \| 0.(2)?5 %|noise 0.5 \| 2 %"),
    "audit_shift": (("holdout", "told to be another set", "accused"), "^(lacks|1.1|a tenth|the same law, [25])"),
    "bandwidth": (("sigma / median", "kinds found", "found, unrotated"), r"^photo.*\| (0.25|0.5|1.0) \| \d"),
    "baseline_modes": (("method", "recall", "purity"), "^colored"),
    "broken_runs": (("fault", "runs", "refused in one sentence", "faults"), "^(killed|disk|two)"),
    "damaged_files": (("inputs", "refused", "accepted", "wrong", "hang", "memory", "crash"), "^all"),
    "dp_hp_gaussians": (("method", "features", "NLL", "NLL of the real data"), r"^mixture \| 0.5 \|"),
    "dp_hp_marginals": (("method", "α = 3", "paper, α = 3 / 4"), r"^simple \| (0.3)? .*(degree|paper|MERF|permuted)"),
    "dp_hp_mnist": (("trained on", "mean accuracy", "runs"), ""),
    "extraction": (("network", "way", "images/s"), ""),
    "extraction_cost": (("photographs", "way", "CPU s", "s", "peak, GB", "finc-eval's CPU"), ""),
    "extractors_agree": (("sets", "extractor", "also first of the other", "rank correlation"), ""),
    "features": (("set", "rms error, iid", "rms error, orthogonal"), r"\| 0.5 \| 2000"),
    "paired_prompts": (
        ("regime", "a kind", "overall", "a word", "all three faults", "other words"),
        "^(50|2000|all) |toy, ",
    ),
    "few_groups": (("samples", "overall, by effective ones", "a kind, by those it is worth"), "^(2|6|40) "),
    "uneven_groups": (("sets", "cluster", "values", "plain", "mean size", "by sizes", "error"), r"\| (0.0|1.0) \|"),
    "finc_scaling": (("n = m", "compare, s", "peak, GB", "published, s"), r"^(1000|10000|50000|250000) "),
    "frechet_intervals": (("design", "distance", "read", "interval holds the distance"), ""),
    "gate": (("regime", "false failures", "passed", "found"), "^(unchanged|prompts|compact|new|worse) "),
    "gate_real": (
        ("regime", "regression", "pass"),
        "^(unchanged|halved|artefact|photos-unchanged|photos-lost|local-.*) ",
    ),
    "gate_retraining": (
        ("law", "false losses", "false gains", "false passes, lost"),
        r"^(gamma|t5|unlike) \| (5|10|20) .*\| 3 ",
    ),
    "golden": (("condition", "pairs", "years with a red night", "by bets", "by rule 4", "amber nights a year"), ""),
    "golden_faults": (
        ("fault", "pairs", "conditions", "red on the first night", "red within three", "night of red, median"),
        "",
    ),
    "generators": (
        ("model", "difference", "modes too many", "largest ratio"),
        r"^efficientnet.* (fgan|ddpm|half_trained_gan|wgan_collapsed|real \(train\)) ",
    ),
    "held_out": (("held out", "p", "recall"), "^Tiny"),
    "host_profile": (("stage", "seconds of the processor"), "^(read|sketch|directions|all,)"),
    "image_decoding": (("JPEG, pixels", "images/s of a core", "cores for 2000/s"), ""),
    "inference_generators": (("generator", "FD", "difference"), "^(real|fgan|ddpm|half|wgan)"),
    "inference_null": (
        ("regime", "false discovery", "shares hold"),
        "^(tight-1000-1000|zipf-100-5000|digits-500-500|photographs-100-5000|groups-3-both|kinds-bursts) ",
    ),
    "inference_power_planted": (("design", "found", "by directions", "k = 50"), ""),
    "inference_shares": (
        ("design", "error of a set's own share", "interval holds the class", "all operational shares hold"),
        "^[gpd].*six |zipf",
    ),
    "kahm_null": (("members / others", "mean", "largest", "rejected at 5 %"), ""),
    "kahm_speed": (("N", "p", "fit, s", "fit, s, paper"), r"^(1000 \| 100(00)?|1000 \| 784|5000 \| 784) \| 20 "),
    "leaderboard": (("number", "all true ranks held", "pairs told apart, of 25"), r"300 or 600 v 600 \| shared \|"),
    "leaderboard_others": (("by", "lines", "s", "of these reversed by the other digits"), ""),
    "leaderboard_scale": (("models", "to add one, s", "to rank all, s", "peak memory, MB"), ""),
    "local_faults_each": (("fault", "planted", "150 v 150", "300 v 300", "1000 v 300"), ""),
    "many_files": (("files", "extract, s", "extract, peak MB", "verify, peak MB"), ""),
    "names": (("what", "right"), ""),
    "neighbor_index": (("n = m", "d", "times as fast", "recall, as told", "recall"), ""),
    "neighbors": (("n = m", "PRDC, s", "prdc, s", "Rarity, s", "Rarity, n × n, s"), ""),
    "planted_modes": (("method", "recall", "purity"), "^Tiny"),
    "precision": (
        ("set", "smallest overlap of a mode", "largest change of a share", "largest change of a p-value"),
        "float32",
    ),
    "private_sketch": (
        ("features", "epsilon", "tau", "power"),
        r"planted faults \| (Hermite, degree 2|Fourier, 10,000) ",
    ),
    "said_first_shown": (("fault", "planted, %", "said", "interval", "verdict"), ""),
    "said_first_held": (("fault", "verdict"), "^all"),
    "scaling_ranges": (("shards", "seconds of a core", "memory, MB"), ""),
    "scaling_stages": (("stage", "samples/s of a core", "bytes a sample"), "2(0|5),000"),
    "shards": (("shards", "samples in each", "seconds", "memory beyond the modules, MB"), r"^10 \| 10 |10,000"),
    "table1": (
        ("n = m", "FINC", "paper: FINC", "KEN, Cholesky", "paper: KEN, Cholesky"),
        r"^(1000|10000|50000|250000) ",
    ),
    "total_variation": (
        ("laws", "gen v ref", "truth", "bias: plain", "ours", "interval holds"),
        r"^(none|half gone) \| (100|1000) v 1000? \| 50 ",
    ),
    "unseen_scores": (("unseen digit", "score, mode of 1", "score, mode of 6"), "^[1670] "),
    "clip_drift": (("regime", "a drift is said", "any finding", "named", "dated", "share"), ""),
    "video_faults": (
        ("fault", "motion, 200 clips, 100%", "motion, 200 clips, 25%", "motion, 30 clips, 100%"),
        "^(none|frozen|slowed by 2|sped by 2|reversed|shuffled|flicker|a fifth)",
    ),
    "waiting_verbs": (
        ("verb", "samples a set", "CPU s", "mathematics", "imports", "files and hashes", "pages and words"),
        "",
    ),
}
