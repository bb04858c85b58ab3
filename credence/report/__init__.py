"""One self-contained HTML report for people who must decide whether to rely on a model."""

from credence.report.data import (
    ClassificationTarget,
    Convergence,
    RegressionTarget,
    Reliability,
    ReportData,
    RowTable,
    RunRecord,
    least_sure_index,
)
from credence.report.judging.levels import Check, Level
from credence.report.judging.simple_models import LogScores
from credence.report.judging.verdict import Verdict, verdict
from credence.report.page import judge, render
from credence.report.writing import write_report

__all__ = [
    "Check",
    "ClassificationTarget",
    "Convergence",
    "Level",
    "LogScores",
    "RegressionTarget",
    "Reliability",
    "ReportData",
    "RowTable",
    "RunRecord",
    "Verdict",
    "judge",
    "least_sure_index",
    "render",
    "verdict",
    "write_report",
]
