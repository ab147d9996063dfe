
-- Returns {ok, ..., IDs, infos}.

local err = check()
if err then
  return err
end
local us = now_us()
local ids = redis.call('ZRANGEBYSCORE', sessions, whole(math.floor(us / 1000)), '+inf')
local infos = {}
for i, id in ipairs(ids) do
  infos[i] = redis.call('HGET', info, id) or ''
end
return answer('ok', us, ids, infos)
