"""What the makers of the synthetic files share."""

import csv
import datetime
import io

DAY = datetime.timedelta(days=1)


def csv_text(rows, **form):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n", **form).writerows(rows)
    return buffer.getvalue()
