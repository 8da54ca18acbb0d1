// The files of a result: what the runtime collected, and the whole table as CSV. Pure.
#pragma once

#include <string>
#include <vector>

#include "agentd/envelope/envelope.h"
#include "agentd/record/record.h"
#include "agentd/sandbox/sandbox.h"

namespace agentd::loop {

// `envelope` may be null. A table adds "table.csv" (or "table-2.csv", … where the program made a
// file of that name).
[[nodiscard]] std::vector<record::Artifact> artifacts_of(sandbox::RunResult run,
                                                         const envelope::Envelope* envelope);

// RFC 4180. SECURITY: text that a spreadsheet would take for a formula gets a "'" in front: what
// begins with "=", "@", tab or CR, and with "+" or "-" unless a mere figure follows ("-12.5%",
// "+49 30 123", "-$1,200", "-"). Numbers stay.
[[nodiscard]] std::string table_csv(const envelope::Table& table);

}  // namespace agentd::loop
