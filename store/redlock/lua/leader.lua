
-- Returns {held, lease, its remaining ms} or {none}.

local err = check()
if err then
  return err
end
local value = redis.call('GET', lease)
if not value then
  return {'none'}
end
return {'held', value, whole(redis.call('PTTL', lease))}
