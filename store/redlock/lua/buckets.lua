
-- Returns {ok, ..., head, marker, held, names}.

local err = check()
if err then
  return err
end
return report('ok', '', '', '', redis.call('SMEMBERS', buckets))
