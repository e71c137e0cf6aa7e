#ifndef ROWHOUSE_CLIENT_INTERNAL_SURVEY_H_
#define ROWHOUSE_CLIENT_INTERNAL_SURVEY_H_

#include <vector>

#include "client/internal/cluster_core.h"
#include "rowhouse/survey.h"

namespace rowhouse::client::internal {

/// `Cluster::Survey`.
std::vector<ServerState> SurveyServers(ClusterCore& cluster,
                                       const SurveyOptions& options);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_SURVEY_H_
